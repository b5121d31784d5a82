/** On each connection: whether the log still holds all that this browser has seen of it. Cheap; a real check follows on the receipt pages. */
import { readPin } from '#lib/cache/pins.ts';
import type { App } from './app.svelte.ts';

export const watchReceipts = async (app: App): Promise<void> => {
  const bridgeId = app.session.identity?.session.bridgeId;
  const seen = bridgeId === undefined ? 0 : ((await readPin(bridgeId))?.checkpoint?.size ?? 0);
  if (seen === 0) return;
  const answer = await app.call('receipt.list', { limit: 1 });
  if (!answer.ok) return;
  const now = answer.value.receipts[0]?.seq ?? 0;
  if (now >= seen) return;
  const { words } = await import('#lib/text/receipts.en.ts');
  app.receiptAlarm = words.problem.rollback;
};
