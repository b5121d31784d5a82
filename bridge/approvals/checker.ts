/**
 * A thread that checks signatures by the batch and says for each whether all of them hold. It gets bytes and gives
 * a yes or no; it opens nothing. Started and spoken to only by aside.ts.
 */
import { flushCompileCache } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { verifyEd25519 } from './signature.ts';

/** Questions one after the other: public key, message and signature of each, `lengths` of all three. */
export interface Batch {
  readonly bytes: Uint8Array;
  readonly lengths: Uint32Array;
}

/** The same array for the same key, by which it is parsed once. A log has few; a hostile one begins anew. */
const keys = new Map<string, Uint8Array>();
const mostKeys = 256;
const keyOf = (bytes: Uint8Array): Uint8Array => {
  const name = Buffer.from(bytes).toString('latin1');
  const known = keys.get(name);
  if (known !== undefined) return known;
  if (keys.size >= mostKeys) keys.clear();
  const own = Uint8Array.from(bytes); // not the whole batch with it
  keys.set(name, own);
  return own;
};

const holds = ({ bytes, lengths }: Batch): boolean => {
  let at = 0;
  const next = (length = 0): Uint8Array => bytes.subarray(at, (at += length));
  for (let each = 0; each < lengths.length; each += 3) {
    const key = keyOf(next(lengths[each]));
    const message = next(lengths[each + 1]);
    if (!verifyEd25519(key, message, next(lengths[each + 2]))) return false;
  }
  return true;
};

parentPort?.on('message', (batch: Batch) => parentPort?.postMessage(holds(batch)));
flushCompileCache();
