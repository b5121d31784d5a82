/** What the receipt pages share, so that going from the list to one and back loses nothing. */
import { createContext } from 'svelte';
import type { App } from './app.svelte.ts';
import { ReceiptLog } from './receipts.svelte.ts';
import { LogCheck, ReceiptTrust } from './verify.svelte.ts';

export class Receipts {
  readonly log: ReceiptLog;
  readonly trust: ReceiptTrust;
  readonly check: LogCheck;

  constructor(app: App) {
    this.log = new ReceiptLog(app);
    this.trust = new ReceiptTrust(app);
    this.check = new LogCheck(app, this.trust);
  }
}

export const [getReceipts, setReceipts] = createContext<Receipts>();
