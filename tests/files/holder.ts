/** A second bridge process, as far as leases go: opens the workspace, says so, and holds it until it is killed. */
import { openRegistry } from './registry.ts';

const [base = '', path = ''] = process.argv.slice(2);
const { workspaces } = openRegistry(base, 'second');
try {
  await workspaces.open({ path });
  process.stdout.write('open\n');
  // Named, or it and its lease could be collected as garbage.
  setInterval(() => workspaces, 1000);
} catch (error) {
  process.stdout.write(`${error instanceof Error ? error.message : ''}\n`);
}
