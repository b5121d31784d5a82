/// <reference lib="webworker" />
/**
 * Verifies receipts off the page's thread (U-23), with the same verifier as the bridge and WebCrypto. For a whole log two
 * of these work together: Ed25519 keeps a thread busy, so one checks the signatures that the other asks about.
 */
import { expose, transfer, wrap } from 'comlink';
import { checkLog, checkReceipt } from './verify-checks.ts';
import type { Known, LogPage, LogVerdict, Progress, ReceiptProof, ReceiptVerdict, Shown } from './verify-contract.ts';
import { inThisThread, webPlatform, type Signatures } from './verify-platform.ts';

const platform = webPlatform();
const hold = inThisThread(platform);
/** The messages are made for this question alone and move without a copy. */
const asking =
  (other: Signatures): Signatures =>
  (asked) =>
    other(
      transfer(
        asked,
        asked.map(([, message]) => message.buffer),
      ),
    );

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
  ): Promise<LogVerdict> => checkLog(platform, known, shown, page, progress, asking(wrap<Signatures>(other))),
  serve: (port: MessagePort): void => expose(hold, port),
};
export type Verifier = typeof api;
expose(api);
