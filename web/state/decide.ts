/** A decision, signed by the key of this browser over exactly what was shown. */
import { canonical } from '#protocol/json.ts';
import { decisionProofPrefix, type DecisionProof } from '#protocol/methods/approval.ts';
import { sha256Hex, signText } from '#lib/link/identity.ts';
import type { App } from './app.svelte.ts';
import type { ConversationState, Outcome } from './contract.ts';
import { refused } from './failure.ts';

export type DecideAnswer = Parameters<ConversationState['decide']>[1];

/** `digest` is that of the action as displayed; the bridge refuses any other. */
export const decide = async (
  app: App,
  shown: { approvalId: string; digest: string },
  answer: DecideAnswer,
): Promise<Outcome<{ receiptId: string }>> => {
  const identity = app.session.identity;
  if (identity === null) return refused('unauthorized');
  const { approvalId, digest } = shown;
  const { value, optionId, note, remember, rule } = answer;
  const statement: DecisionProof = {
    approval: approvalId,
    digest,
    option: optionId,
    value,
    noteSha256: await sha256Hex(note ?? ''),
  };
  const sig = await signText(identity, decisionProofPrefix + canonical(statement));
  return app.call('approval.decide', {
    approvalId,
    digest,
    optionId,
    value,
    ...(note === undefined ? {} : { note }),
    ...(remember === undefined ? {} : { remember }),
    ...(rule === undefined ? {} : { rule }),
    proof: { keyId: identity.keyId, sig },
  });
};
