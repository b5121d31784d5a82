/// <reference lib="webworker" />
/** Verifies receipts off the page's thread (U-23), with the same verifier as the bridge and WebCrypto. */
import { expose } from 'comlink';
import { checkLog, checkReceipt } from './verify-checks.ts';
import type { Known, LogPage, LogVerdict, Progress, ReceiptProof, ReceiptVerdict, Shown } from './verify-contract.ts';
import { webPlatform } from './verify-platform.ts';

const platform = webPlatform();

const api = {
  verifyReceipt: (
    known: Known,
    proof: ReceiptProof,
    options: { readonly consistency: readonly string[] | null; readonly kept: boolean },
  ): Promise<ReceiptVerdict> => checkReceipt(platform, known, proof, options),
  verifyLog: (
    known: Known,
    shown: Shown,
    page: (afterSeq: number) => Promise<LogPage>,
    progress: (progress: Progress) => void,
  ): Promise<LogVerdict> => checkLog(platform, known, shown, page, progress),
};
export type Verifier = typeof api;
expose(api);
