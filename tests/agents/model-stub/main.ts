/** The model stub alone, to try an agent by hand: prints its address and answers until it is interrupted. */
import { startModelStub } from './server.ts';

const stub = await startModelStub();
process.stdout.write(`${stub.url}\n`);
