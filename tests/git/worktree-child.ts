/** Makes, changes, brings back and removes worktrees without end, until it is killed. Says when it has begun. */
import { write } from './checkpoint-stage.ts';
import { openStage } from './worktree-stage.ts';

const stage = await openStage(process.argv[2] ?? '');
process.stdout.write('begun\n');
for (let round = 0; ; round += 1) {
  const { path, conversationId } = await stage.make(`Round ${round}`, round % 3 !== 0);
  // Names of this round's own: what an earlier one brought back would be a conflict.
  for (let file = 0; file < 10; file += 1)
    write(path, `d${file % 3}/${process.pid}-${round}-${file}`, `${round} ${Math.random()}`);
  await stage.bring(conversationId);
  if (round % 2 === 0) await stage.remove(conversationId);
}
