/** What the page hands to the verifying worker and what comes back. All of it can be posted. */
import type { Answer } from '#protocol/methods.ts';
import type { SealedView } from '#protocol/methods/receipt.ts';
import type { Statement } from '#protocol/receipts.ts';
import type { CheckLine, Finding } from '#protocol/verify.ts';

export type { CheckLine, Finding };
export type ReceiptProof = Answer<'receipt.proof'>;

/** What this browser knew before it was handed anything. */
export interface Known {
  readonly bridgeId: string;
  /** SPKI, PEM: the pinned key, never the one that comes along. */
  readonly publicKey: string;
  /** The newest signed state of the log that held: a C2SP note. */
  readonly checkpoint: string | null;
}

/** What the bridge shows now: a `receipt.proof` is one. */
export type Shown = Pick<ReceiptProof, 'publicKey' | 'checkpoint' | 'rotations'>;

/** Something is wrong with the bridge's key or its log as a whole, beyond a single receipt. */
export type LogProblem =
  | { readonly kind: 'key'; readonly known: string; readonly shown: string }
  | { readonly kind: 'rollback'; readonly from: number; readonly to: number }
  | { readonly kind: 'fork' }
  | { readonly kind: 'checkpoint' };

export interface Head {
  readonly note: string;
  readonly size: number;
}

export interface ReceiptVerdict {
  readonly ok: boolean;
  readonly lines: readonly CheckLine[];
  /** What could not be checked, and why. */
  readonly notes: readonly string[];
  readonly incomplete: boolean;
  /** Read from the signed bytes; null when their signature does not hold. */
  readonly statement: Statement | null;
  /** The signed state of the log, when it held and continues the known one. */
  readonly head: Head | null;
  readonly problem: LogProblem | null;
  /** Key changes since the pinned key, each of which held. */
  readonly rotations: number;
  /** The receipt as others' tools read it, made here; null unless everything it states held. */
  readonly forms: ReceiptForms | null;
}

export interface ReceiptForms {
  /** PEM of the key that signed this receipt: the pinned one, or one reached from it by signed changes. */
  readonly signer: string;
  readonly bundle: string;
  readonly trustedRoot: string;
  readonly tlogProof: string;
}

export interface LogVerdict {
  readonly ok: boolean;
  readonly receipts: number;
  /** At most `limits.verifyProblems`; `problemCount` is of all. */
  readonly problems: readonly Finding[];
  readonly problemCount: number;
  readonly notes: readonly Finding[];
  readonly incomplete: boolean;
  readonly head: Head | null;
  readonly problem: LogProblem | null;
  readonly rotations: number;
  readonly ms: number;
}

/** How far a whole check is: `slow` once it goes one by one to name what is wrong. */
export interface Progress {
  readonly done: number;
  readonly slow: boolean;
}

export interface LogPage {
  readonly receipts: readonly SealedView[];
  readonly more: boolean;
}
