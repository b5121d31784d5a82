/**
 * Where the thread of checker.ts begins, with the compile cache of the process. Plain JavaScript for the reason given in
 * main.js.
 */
import { enableCompileCache } from 'node:module';
import { workerData } from 'node:worker_threads';

if (workerData.compileCache !== null) enableCompileCache(workerData.compileCache);
await import('./checker.ts');
