/** Takes a lock, says so, and waits to be killed. */
import { acquireLock } from '../../bridge/ledger/lock.ts';

const lock = acquireLock(process.argv[2] ?? '', { pid: process.pid, what: 'a test' });
process.stdout.write(lock.held ? 'held\n' : 'refused\n');
// Named, or it could be collected as garbage, and free the lock.
setInterval(() => lock, 1_000);
