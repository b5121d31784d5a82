/** Writes, records and puts back without end, until it is killed. Says when it has done all of it once. */
import { openStage, write } from './checkpoint-stage.ts';

const stage = await openStage(process.argv[2] ?? '', { tidyMs: 1 });
const first = await stage.record('before_turn');
for (let round = 0; ; round += 1) {
  for (let file = 0; file < 20; file += 1) write(stage.folder, `d${file % 4}/f${file}`, `${round} ${Math.random()}`);
  await stage.record('after_turn');
  if (round % 3 === 0) await stage.restore(first.checkpointId);
  if (round === 0) process.stdout.write('begun\n');
}
