/**
 * Where the seeker worker begins (seeker.ts is all it does): a thread starts without the compile cache of the process,
 * and would load Node's stripper of types first. Plain JavaScript for the reason given in main.js.
 */
import { enableCompileCache } from 'node:module';
import { workerData } from 'node:worker_threads';

if (workerData.compileCache !== null) enableCompileCache(workerData.compileCache);
await import('./seeker.ts');
