/** Stands for a bridge that will be killed: `node holder.ts CONTAINMENT DIRECTIVES` holds a scripted agent, prompts it once, prints what a bridge would have recorded, and waits. */
import { stage, Recorder, say, noBlob } from './recorder.ts';

const [, , containment, directives = ''] = process.argv;
const on = await stage(containment === 'best_effort' ? { containment } : {});
const agent = await on.start(await on.scripted({}), new Recorder());
await agent.prompt(say(directives), noBlob);
process.stdout.write(
  `${JSON.stringify({ directory: on.directory, containment: agent.ready.containment, ...on.spawned[0] })}\n`,
);
setInterval(() => undefined, 1000);
