/** Swaps a directory (or file) and a link under one name without pause until it is killed or its time is up. */
import { renameSync } from 'node:fs';

const [name = '', real = '', link = '', milliseconds = '0'] = process.argv.slice(2);
process.stdout.write('swapping\n');
for (const end = Date.now() + Number(milliseconds); Date.now() < end;) {
  for (let round = 0; round < 200; round += 1) {
    renameSync(name, real);
    renameSync(link, name);
    renameSync(name, link);
    renameSync(real, name);
  }
}
