/**
 * How an answer is made and judged, pure: which option it takes, what decides without asking, and the proof a decision
 * carries. The rule not to break: nothing of unknown meaning is ever chosen automatically. Called by the desk.
 */
import { createHash } from 'node:crypto';
import type { Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import type { ApprovalOption } from '#protocol/events.ts';
import type { Params } from '#protocol/methods.ts';
import type { PolicyAnswer } from '#protocol/policy.ts';
import { decisionProofText, fromBase64 } from '#protocol/receipts.ts';
import type { ApprovalRecord } from '../ledger/contract.ts';
import type { StandingAnswer, Verdict } from './contract.ts';
import { ruleBase, type Card, type Ruling } from './record.ts';

type Decide = Params<'approval.decide'>;
export type VerifyProof = (publicKeySpki: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean;

const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The option an automatic answer takes: once, never for ever; a no may be any no. Without one it is asked (T43). */
export const optionFor = (options: readonly ApprovalOption[], value: 'allow' | 'deny'): ApprovalOption | undefined => {
  const meant = options.filter((option) => option.meaning === value);
  const once = meant.find((option) => option.kind === (value === 'allow' ? 'allow_once' : 'reject_once'));
  return once ?? (value === 'deny' ? meant[0] : undefined);
};

export const resolvedRefusal = (state: Exclude<ApprovalRecord['state'], 'pending'>): Refusal => {
  if (state === 'expired') return new Refusal('approval_expired');
  return new Refusal(state === 'withdrawn' ? 'approval_withdrawn' : 'approval_already_decided');
};

export const offered = (options: readonly ApprovalOption[], params: Decide): ApprovalOption => {
  const option = options.find((candidate) => candidate.id === params.optionId);
  // An option of unknown meaning is chosen only by its exact id, with the value the operator gave it.
  if (option === undefined || (option.meaning !== 'other' && option.meaning !== params.value))
    throw new Refusal('decision_not_offered');
  return option;
};

/** What decides without asking, in this order: reject rule, allow rule, standing answer. */
export const automatic = (card: Card, policy: PolicyAnswer, always: StandingAnswer | undefined): Ruling | null => {
  const value = policy.verdict === 'ask' ? always?.value : policy.verdict === 'allow' ? 'allow' : 'deny';
  const option = value === undefined ? undefined : optionFor(card.request.options, value);
  if (value === undefined || option === undefined) return null;
  const base = { ...ruleBase, value, optionId: option.id, policyOutcome: policy.verdict };
  if (policy.verdict === 'ask') return { ...base, rule: always?.rule ?? null };
  return { ...base, rule: policy.ruleId, ruleSentence: `${policy.ruleId ?? ''} ${policy.because}`.slice(0, 1000) };
};

export const verdictOf = (card: Card, ruling: Ruling, receiptId: string): Verdict => ({
  value: ruling.value,
  approvalId: card.approvalId,
  receiptId,
  optionId: ruling.optionId,
  ...(ruling.note === undefined ? {} : { note: ruling.note }),
});

/** The proof of R-20 for a page; for the private socket an operator at a terminal, or an explicit and recorded `--yes`. */
export const prove = (
  actor: Actor,
  params: Decide,
  digest: string,
  verifyProof: VerifyProof,
): Pick<Ruling, 'by' | 'session' | 'proof'> => {
  if (actor.kind !== 'browser') {
    if (!actor.tty && params.yes !== true)
      throw new Refusal('forbidden', { message: 'Deciding without a terminal needs --yes.' });
    const by = actor.kind === 'cli' ? 'control-socket' : 'terminal';
    return { by: 'cli', session: null, proof: { by, ...(params.yes === true ? { mark: '--yes' } : {}) } };
  }
  const { proof, approvalId, optionId: option, value, note = '' } = params;
  const signature = proof === undefined ? null : fromBase64(proof.sig, 'base64url');
  if (proof === undefined || signature === null || proof.keyId !== actor.keyId) throw new Refusal('invalid_proof');
  const said = decisionProofText({ approval: approvalId, digest, option, value, noteSha256: sha256(note) });
  if (!verifyProof(actor.publicKeySpki, utf8(said), signature)) throw new Refusal('invalid_proof');
  return { by: 'operator', session: actor.sessionId, proof: { by: 'browser', keyId: proof.keyId, sig: proof.sig } };
};
