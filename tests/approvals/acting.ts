/** A process that asks, decides and acts without pause until it is killed: argv[2] is its state, argv[3] where effects go. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openPage, openRoom, writeRequest } from './parts.ts';

const [, , state = '', effects = ''] = process.argv;
const room = await openRoom(state);
const page = openPage();
for (let n = 0; ; n += 1) {
  const asking = room.desk.ask(writeRequest(`${String(n)}\n`));
  const [record] = await room.waiting(1);
  const deciding = room.decide(record!, n % 3 === 2 ? 'deny' : 'allow', page);
  const verdict = await asking;
  if (verdict.value === 'allow') {
    writeFileSync(join(effects, verdict.approvalId), '');
    if (n % 2 === 0) await room.desk.outcome(verdict.approvalId, 'ok', { startedAt: 1, endedAt: 2 });
  }
  await deciding;
  if (n === 1) process.stdout.write('acting\n');
}
