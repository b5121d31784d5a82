/// <reference lib="webworker" />
/**
 * Verifies receipts off the page's thread (U-23), with the same verifier as the bridge and WebCrypto. For a whole log two
 * of these work together: Ed25519 keeps a thread busy, so one checks the signatures that the other asks about.
 */
import { expose, transfer, wrap } from 'comlink';
import { checkLog, checkReceipt } from './verify-checks.ts';
import type { Known, LogPage, LogVerdict, Progress, ReceiptProof, ReceiptVerdict, Shown } from './verify-contract.ts';
import { inThisThread, webPlatform, type Signatures, type Signed } from './verify-platform.ts';

const platform = webPlatform();
const hold = inThisThread(platform);
/** A batch as one piece of memory, which moves without a copy: ends of keys, messages and signatures within it. */
interface Packed {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly ends: readonly number[];
}
const pack = (asked: readonly Signed[]): Packed => {
  const parts = asked.flat();
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let end = 0;
  const ends = parts.map((part) => {
    bytes.set(part, end);
    return (end += part.length);
  });
  return { bytes, ends };
};
const unpack = ({ bytes, ends }: Packed): Signed[] => {
  const parts = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
  const part = (index: number): Uint8Array => parts[index] ?? new Uint8Array();
  return Array.from({ length: ends.length / 3 }, (_, at) => [part(3 * at), part(3 * at + 1), part(3 * at + 2)]);
};

type Held = (packed: Packed) => Promise<boolean>;
const holdPacked: Held = (packed) => hold(unpack(packed));
const asking =
  (other: Held): Signatures =>
  (asked) => {
    const packed = pack(asked);
    return other(transfer(packed, [packed.bytes.buffer]));
  };

const api = {
  verifyReceipt: (
    known: Known,
    proof: ReceiptProof,
    options: { readonly consistency: readonly string[] | null; readonly kept: boolean },
  ): Promise<ReceiptVerdict> => checkReceipt(platform, known, proof, options),
  /** `other` leads to a second worker that serves signatures. */
  verifyLog: (
    known: Known,
    shown: Shown,
    page: (afterSeq: number) => Promise<LogPage>,
    progress: (progress: Progress) => void,
    other: MessagePort,
  ): Promise<LogVerdict> => checkLog(platform, known, shown, page, progress, asking(wrap<Held>(other))),
  serve: (port: MessagePort): void => expose(holdPacked, port),
};
export type Verifier = typeof api;
expose(api);
