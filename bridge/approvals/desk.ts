/**
 * The desk: where every action waits for its one decision. An approval is pending, then exactly one of
 * allowed, denied, expired, withdrawn. The rule not to break: the waiting `ask` resolves only after the decision and
 * its receipt are committed, and nothing but a decision, the agent, an ending or time resolves it.
 * Held by the conversations room; the gate reaches it through the command table.
 */
import { randomBytes } from 'node:crypto';
import { isOperator, type Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import type { WithdrawReason } from '#protocol/events.ts';
import { uuidv7 } from '#protocol/ids.ts';
import type { Json } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import type { Params } from '#protocol/methods.ts';
import type { PolicyAnswer } from '#protocol/policy.ts';
import type { Ledger, Tx } from '../ledger/contract.ts';
import { actionOf, isOnlyEffect } from './action.ts';
import { automatic, offered, optionFor, prove, resolvedRefusal, verdictOf, type VerifyProof } from './answers.ts';
import type { ApprovalRequest, Desk, StandingAnswer, Verdict } from './contract.ts';
import { groundOf, pauseAfter } from './policy/ground.ts';
import { offerRule } from './policy/offers.ts';
import { policyRequest, type PolicyRequest } from './policy/request.ts';
import { rulesAt, type Drafts } from './policy/rules.ts';
import { evaluate, type Rule } from './policy.ts';
import {
  putDecision,
  putExpiry,
  putOutcome,
  putRequested,
  putWithdrawal,
  recoverApprovals,
  requestNames,
  type Card,
  type Ruling,
} from './record.ts';
import type { DeskSeal } from './seal.ts';
import { approvalView } from './views.ts';

type Timer = NodeJS.Timeout | number;
export interface DeskOptions {
  readonly ledger: Ledger;
  readonly seal: DeskSeal;
  /** Wall clock, ms. */
  readonly now: () => number;
  /** Monotonic timers: expiry must not follow a wall clock that jumps (T88). */
  readonly timers: { set(run: () => void, afterMs: number): Timer; clear(timer: Timer): void };
  /** Ids and codes only; never a note, a path or a command. */
  readonly log: (line: string, about: Readonly<Record<string, string | number>>) => void;
  /** Ed25519; `verifyEd25519` of signature.ts. */
  readonly verifyProof: VerifyProof;
  /** Effective trust of a workspace: its review found nothing, or that was accepted. Looks at the folder. */
  readonly trusted: (workspaceId: string) => boolean;
  /** Why nothing may be allowed in a workspace, by its last review; null when it may (W-14). */
  readonly blocked: (workspaceId: string) => string | null;
}

type Decide = Params<'approval.decide'>;

interface Waiting extends Card {
  /** Trust of the workspace as it was when the card was shown, or last reviewed. */
  trust: string | null;
  readonly resolve: (verdict: Verdict) => void;
  timer: Timer | null;
  stopListening: () => void;
}

const trustOf = (tx: Pick<Tx, 'trust'>, workspaceId: string): string | null =>
  tx.trust(workspaceId)?.fingerprint ?? null;

const openCard = (
  request: ApprovalRequest,
  policy: PolicyRequest,
  action: { bytes: Uint8Array; digest: string },
  requestedAt: number,
  resolve: Waiting['resolve'],
): Waiting => ({
  approvalId: uuidv7(requestedAt, randomBytes),
  request,
  policy,
  digest: action.digest,
  actionBytes: action.bytes.length,
  requestedAt,
  expiresAt: requestedAt + limits.approvalMs,
  rule: offerRule(policy, requestNames(request)),
  trust: null,
  resolve,
  timer: null,
  stopListening: () => undefined,
});

/** Rules and trust as they are now must still let this answer stand; trust that changed is reviewed once more. */
const checkPolicy = (
  tx: Tx,
  rules: readonly Rule[],
  card: Waiting,
  value: 'allow' | 'deny',
  at: number,
): PolicyAnswer => {
  const policy = evaluate(rules, card.policy, at);
  if (value === 'deny') return policy;
  if (policy.verdict === 'reject') throw new Refusal('stale_policy');
  const trust = trustOf(tx, card.request.workspace.id);
  if (trust === card.trust) return policy;
  card.trust = trust;
  throw new Refusal('stale_policy', {
    message: 'What was accepted of this folder changed while this was open. Review it again.',
  });
};

export const createDesk = (options: DeskOptions): Desk => {
  const { ledger, seal, now, timers } = options;
  const waiting = new Map<string, Waiting>();
  const standing = new Map<string, StandingAnswer>();
  const drafts: Drafts = new Map();
  /** Allowed, unused permissions by conversation: what a served effect may consume. Lives as long as the turn. */
  const unused = new Map<string, { approvalId: string; receiptId: string; effects: readonly Json[] }[]>();

  const changed = (...topics: Parameters<typeof ledger.feed.invalidate>[0][]): void =>
    topics.forEach((topic) => ledger.feed.invalidate(topic));

  /** The only place where a waiting `ask` resolves. */
  const settle = (card: Waiting, verdict: Verdict): void => {
    if (!waiting.delete(card.approvalId)) return;
    if (card.timer !== null) timers.clear(card.timer);
    card.stopListening();
    if (verdict.value === 'allow' && card.request.kind === 'tool') {
      const { conversationId, effects } = card.request;
      unused.set(conversationId, [
        ...(unused.get(conversationId) ?? []),
        { approvalId: card.approvalId, receiptId: verdict.receiptId, effects },
      ]);
    }
    card.resolve(verdict);
  };

  const forgetUnused = (approvalId: string): void => {
    for (const [conversationId, list] of unused) {
      const rest = list.filter((entry) => entry.approvalId !== approvalId);
      if (rest.length === 0) unused.delete(conversationId);
      else unused.set(conversationId, rest);
    }
  };

  const expire = async (card: Waiting): Promise<void> => {
    try {
      const denyOption = optionFor(card.request.options, 'deny')?.id ?? '';
      if (!(await ledger.commit((tx) => putExpiry(tx, seal, card, denyOption)))) return; // what came first settles it
      changed('approvals', 'receipts');
    } catch (error) {
      // Telling the agent no needs no receipt; leaving it waiting for ever would be worse.
      options.log('expiry was not recorded', {
        approvalId: card.approvalId,
        code: error instanceof Refusal ? error.code : 'internal_error',
      });
    }
    settle(card, { value: 'expired', approvalId: card.approvalId });
  };

  const withdrawCards = async (cards: readonly Waiting[], reason: WithdrawReason): Promise<void> => {
    if (cards.length === 0) return;
    let gone = cards; // if the commit fails nothing was allowed, and the caller is ending them: no waiter may hang
    try {
      gone = await ledger.commit((tx) =>
        cards.filter((card) => putWithdrawal(tx, { ...card.request, approvalId: card.approvalId }, reason, now())),
      );
      changed('approvals');
    } finally {
      for (const card of gone) settle(card, { value: 'withdrawn', approvalId: card.approvalId, reason });
    }
  };

  const waitFor = (card: Waiting): void => {
    if (!waiting.has(card.approvalId)) return; // decided between the commit and now
    card.timer = timers.set(() => void expire(card), limits.approvalMs);
    const { signal } = card.request;
    if (signal === undefined) return;
    const abort = (): void => {
      withdrawCards([card], 'agent').catch(() =>
        options.log('withdrawal was not recorded', { approvalId: card.approvalId }),
      );
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    card.stopListening = () => signal.removeEventListener('abort', abort);
  };

  const askIn = (
    tx: Tx,
    card: Waiting,
    action: Uint8Array,
    trusted: boolean,
  ): { ruling: Ruling; receiptId: string } | null => {
    const { conversationId, workspace } = card.request;
    const at = card.requestedAt;
    card.trust = trustOf(tx, workspace.id);
    const rules = rulesAt(tx, at, drafts);
    const { paused } = groundOf(tx, conversationId, card.trust);
    const policy = evaluate(rules, { ...card.policy, trusted, paused }, at);
    putRequested(tx, card, action, policy.because);
    const ruling = automatic(card, policy, standing.get(conversationId));
    if (ruling === null) return null;
    const row = putDecision(tx, seal, card, ruling, null);
    if (row === null) throw new Refusal('internal_error');
    const rule = rules.find(({ ruleId }) => ruleId === policy.ruleId);
    if (policy.verdict !== 'ask' && rule !== undefined)
      tx.hitRule(rule.ruleId, row.at, rule.draft.limit?.perMs ?? null);
    if (ruling.value === 'allow') pauseAfter(tx, card.policy, conversationId);
    return { ruling, receiptId: row.receiptId };
  };

  /** Looked at only where it decides, for it reads the folder; a rule saved in the same instant finds it not trusted. */
  const isTrusted = (card: Waiting): boolean => {
    const at = card.requestedAt;
    const rules = rulesAt(ledger.read, at, drafts);
    const allows = (trusted: boolean): boolean => evaluate(rules, { ...card.policy, trusted }, at).verdict === 'allow';
    return !allows(false) && allows(true) && options.trusted(card.request.workspace.id);
  };

  const ask: Desk['ask'] = async (request) => {
    const open = [...waiting.values()].filter((card) => card.request.conversationId === request.conversationId).length;
    if (open >= limits.approvalsPending)
      throw new Refusal('rate_limited', { message: 'Too many approvals are waiting in this conversation.' });
    const action = actionOf(request);
    const { promise, resolve } = Promise.withResolvers<Verdict>();
    const policy = policyRequest(request, { trusted: false, paused: null });
    const card = openCard(request, policy, action, now(), resolve);
    const trusted = isTrusted(card);
    // Known before the commit: its event reaches clients first, and an answer may arrive before this function goes on.
    waiting.set(card.approvalId, card);
    const ruled = await ledger
      .commit((tx) => askIn(tx, card, action.bytes, trusted))
      .catch((error: unknown) => {
        waiting.delete(card.approvalId);
        throw error;
      });
    changed('approvals');
    if (ruled === null) waitFor(card);
    else {
      settle(card, verdictOf(card, ruled.ruling, ruled.receiptId));
      changed('receipts', 'rules'); // a rule that decided counts it
    }
    return promise;
  };

  /** R-11 from "known" on, in its order; the operation key was judged by the command table before. */
  const decideIn = (
    tx: Tx,
    actor: Actor,
    params: Decide,
  ): { card: Waiting; ruling: Ruling; answer: { receiptId: string; receiptSeq: number } } => {
    const record = tx.approval(params.approvalId);
    if (record === null) throw new Refusal('unknown_approval');
    if (record.state !== 'pending') throw resolvedRefusal(record.state);
    const card = waiting.get(params.approvalId);
    if (card === undefined) throw new Refusal('approval_withdrawn'); // its waiter ended; recovery will say so in the log
    if (params.digest !== record.digest) throw new Refusal('digest_mismatch');
    const proven = prove(actor, params, record.digest, options.verifyProof);
    const option = offered(card.request.options, params);
    const at = now();
    const blocked = params.value === 'allow' ? options.blocked(card.request.workspace.id) : null;
    if (blocked !== null) throw new Refusal('not_trusted', { message: blocked });
    const policy = checkPolicy(tx, rulesAt(tx, at, drafts), card, params.value, at);
    // A proof is worth what its key is worth: the receipt with the page key precedes the first decision signed by it.
    if (actor.kind === 'browser') seal.session(tx, actor);
    const ruling: Ruling = {
      ...proven,
      value: params.value,
      optionId: option.id,
      rule: null,
      policyOutcome: policy.verdict,
      remember: params.remember === true,
      rememberAs: params.rule,
      note: params.note === '' ? undefined : params.note,
    };
    const row = putDecision(tx, seal, card, ruling, actor);
    if (row === null) throw new Refusal('approval_already_decided');
    if (params.value === 'allow') pauseAfter(tx, card.policy, card.request.conversationId);
    return { card, ruling, answer: { receiptId: row.receiptId, receiptSeq: row.seq } };
  };

  const decide: Desk['decide'] = async (actor, params, store) => {
    if (!isOperator(actor)) throw new Refusal('forbidden');
    const { card, ruling, answer } = await ledger.commit((tx) => {
      const decided = decideIn(tx, actor, params);
      store?.(tx, decided.answer);
      return decided;
    });
    // Only now, after COMMIT, may the agent hear of it: nothing runs without a durable receipt.
    settle(card, verdictOf(card, ruling, answer.receiptId));
    changed('approvals', 'receipts', ...(ruling.remember ? (['rules'] as const) : []));
    return answer;
  };

  return {
    ask,
    decide,

    withdraw: async (where, reason) => {
      const isMeant = ({ approvalId, request }: Waiting): boolean =>
        request.conversationId === where.conversationId &&
        (where.approvalId === undefined || approvalId === where.approvalId) &&
        (where.toolCallId === undefined || request.toolCallId === where.toolCallId);
      // The turn or the conversation ended: what was allowed in it and not used is not for the next one.
      if (where.approvalId === undefined && where.toolCallId === undefined) unused.delete(where.conversationId);
      await withdrawCards([...waiting.values()].filter(isMeant), reason);
    },

    outcome: async (approvalId, outcome, result) => {
      forgetUnused(approvalId);
      if (await ledger.commit((tx) => putOutcome(tx, seal, approvalId, outcome, result))) changed('receipts');
    },

    consume: (conversationId, effect) => {
      const found = unused.get(conversationId)?.find((entry) => isOnlyEffect(entry.effects, effect));
      if (found === undefined) return null;
      forgetUnused(found.approvalId);
      return { approvalId: found.approvalId, receiptId: found.receiptId };
    },

    standing: (conversationId, answer) => {
      if (answer === null) standing.delete(conversationId);
      else standing.set(conversationId, answer);
    },

    list: ({ state, conversationId, before, beforeId, limit: wanted = 100 }) => {
      const limit = Math.min(Math.max(wanted, 1), 100);
      const records = ledger.read.approvals({ state, conversationId, before, beforeId, limit: limit + 1 });
      return {
        approvals: records.slice(0, limit).map((record) => approvalView(ledger.read, record)),
        more: records.length > limit,
      };
    },

    get: (approvalId) => {
      const record = ledger.read.approval(approvalId);
      return record === null ? null : approvalView(ledger.read, record);
    },

    considered: (approvalId) => waiting.get(approvalId)?.policy ?? null,

    recover: (tx) => recoverApprovals(tx, seal, now()),

    close: () => {
      for (const card of [...waiting.values()])
        settle(card, { value: 'withdrawn', approvalId: card.approvalId, reason: 'bridge_restarted' });
      unused.clear();
    },
  };
};
