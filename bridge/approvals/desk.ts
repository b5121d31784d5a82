/**
 * The desk: where every action waits for its one decision (R-10, R-11). An approval is pending, then exactly one of
 * allowed, denied, expired, withdrawn. The rule not to break: the waiting `ask` resolves only after the decision and
 * its receipt are committed, and nothing but a decision, the agent, an ending or time resolves it.
 * Held by the conversations room; the gate reaches it through the command table.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import type { ApprovalOption, EventData, RuleOffer, WithdrawReason } from '#protocol/events.ts';
import { uuidv7 } from '#protocol/ids.ts';
import { canonical, type Json } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import type { Params } from '#protocol/methods.ts';
import { decisionProofText, fromBase64, type ReceiptPredicate } from '#protocol/receipts.ts';
import type { ApprovalRecord, Ledger, ReceiptRow, RuleRow, Tx } from '../ledger/contract.ts';
import type { ApprovalRequest, Desk, StandingAnswer, Verdict } from './contract.ts';
import { evaluate, hasRoom, offerRule, policyDigest, ruleSentence, type PolicyVerdict } from './policy.ts';
import type { DeskSeal } from './seal.ts';
import { approvalView, ruleViews } from './views.ts';

export interface DeskOptions {
  readonly ledger: Ledger;
  readonly seal: DeskSeal;
  /** Wall clock, ms. */
  readonly now: () => number;
  /** Monotonic timers: expiry must not follow a wall clock that jumps (T88). */
  readonly timers: { set(run: () => void, afterMs: number): NodeJS.Timeout | number; clear(timer: NodeJS.Timeout | number): void };
  /** Ids and codes only; never a note, a path or a command. */
  readonly log: (line: string, about: Readonly<Record<string, string | number>>) => void;
  /** Ed25519; `verifyEd25519` of keys.ts. */
  readonly verifyProof: (publicKeySpki: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean;
}

type Decide = Params<'approval.decide'>;
type Decision = NonNullable<ReceiptPredicate['decision']>;
type Effect = Parameters<Desk['consume']>[1];

interface Waiting {
  readonly approvalId: string;
  readonly request: ApprovalRequest;
  readonly digest: string;
  readonly actionBytes: number;
  readonly requestedAt: number;
  readonly expiresAt: number;
  readonly rule: RuleOffer | null;
  /** Trust of the workspace as it was when the card was shown, or last reviewed. */
  trust: string | null;
  readonly resolve: (verdict: Verdict) => void;
  timer: NodeJS.Timeout | number | null;
  stopListening: () => void;
}

/** A decision about to be signed: who, what, and by which rule. */
interface Ruling {
  readonly value: 'allow' | 'deny';
  readonly optionId: string;
  readonly by: Decision['by'];
  readonly session: string | null;
  readonly proof: Decision['proof'];
  readonly rule: string | null;
  readonly ruleSentence?: string | undefined;
  readonly policyOutcome: 'allow' | 'reject' | 'ask';
  readonly note?: string | undefined;
  readonly remember: boolean;
}

const ruleBase = { by: 'rule', session: null, proof: { by: 'rule' }, remember: false } as const;
const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');
const sha256 = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex');
const generationName = 'policy.generation';
/** Allowed decisions without an outcome, as a JSON list: what a restart must call uncertain. */
const unfinishedName = 'approvals.unfinished';

const generation = (tx: Pick<Tx, 'meta'>): number => Number(tx.meta(generationName) ?? '0');
const trustOf = (tx: Pick<Tx, 'trust'>, workspaceId: string): string | null => tx.trust(workspaceId)?.fingerprint ?? null;
const unfinished = (tx: Pick<Tx, 'meta'>): string[] => JSON.parse(tx.meta(unfinishedName) ?? '[]') as string[];

/** Larger parts go into the action by digest, so that its bytes stay within their bound. */
const bounded = (part: Json): Json => {
  const bytes = utf8(canonical(part));
  return bytes.length <= limits.actionBytes / 2 - limits.pathBytes ? part : { sha256: sha256(bytes), bytes: bytes.length };
};

/** The action (R-01): canonical bytes, fresh nonce; the digest a decision is bound to. */
const actionOf = (request: ApprovalRequest): { bytes: Uint8Array; digest: string } => {
  const { agent, workspace } = request;
  const bytes = utf8(
    canonical({
      kind: request.kind,
      conversation: request.conversationId,
      turn: request.turnId,
      toolCall: request.toolCallId,
      agent: { id: agent.id, executableSha256: agent.executableSha256, entrySha256: agent.entrySha256, session: agent.session },
      workspace: { id: workspace.id, rootSha256: workspace.rootSha256 },
      effects: bounded(request.effects),
      detail: bounded(request.detail),
      nonce: randomBytes(limits.nonceBytes).toString('base64url'),
    }),
  );
  return { bytes, digest: sha256(bytes) };
};

const lower = (headline: string): string => headline.charAt(0).toLowerCase() + headline.slice(1);
const sentenceOf = (word: string, headline: string): string => `${word}: ${lower(headline)}`;

/** The option an automatic answer takes. An offer without one of that meaning cannot be answered automatically. */
const optionFor = (options: readonly ApprovalOption[], value: 'allow' | 'deny'): ApprovalOption | undefined =>
  options.find((option) => option.meaning === value && option.kind.endsWith('_once')) ?? options.find((option) => option.meaning === value);

const resolvedRefusal = (state: Exclude<ApprovalRecord['state'], 'pending'>): Refusal => {
  if (state === 'expired') return new Refusal('approval_expired');
  return new Refusal(state === 'withdrawn' ? 'approval_withdrawn' : 'approval_already_decided');
};

const offered = (options: readonly ApprovalOption[], params: Decide): ApprovalOption => {
  const option = options.find((candidate) => candidate.id === params.optionId);
  // An option of unknown meaning is chosen only by its exact id, with the value the operator gave it (R-03).
  if (option === undefined || (option.meaning !== 'other' && option.meaning !== params.value)) throw new Refusal('decision_not_offered');
  return option;
};

const appended = <T>(event: T | null): T => {
  if (event === null) throw new Refusal('internal_error', { cause: new Error('an approval event was dropped') });
  return event;
};

const sameEffect = (effects: readonly Json[], effect: Effect): boolean => {
  const wanted = canonical(
    effect.type === 'write'
      ? { type: 'write', path: effect.path, contentSha256: effect.contentSha256 }
      : { type: 'execute', argv: effect.argv, cwd: effect.cwd },
  );
  // Only a permission for this one effect: the rest of a larger one would ride along unseen.
  return effects.length === 1 && canonical(effects[0]) === wanted;
};

export const createDesk = (options: DeskOptions): Desk => {
  const { ledger, seal, now, timers } = options;
  const waiting = new Map<string, Waiting>();
  const standing = new Map<string, StandingAnswer>();
  /** Allowed, unused permissions by conversation: what a served effect may consume. Lives as long as the turn. */
  const unused = new Map<string, { approvalId: string; receiptId: string; effects: readonly Json[] }[]>();

  const settle = (card: Waiting, verdict: Verdict): void => {
    if (!waiting.delete(card.approvalId)) return;
    if (card.timer !== null) timers.clear(card.timer);
    card.stopListening();
    if (verdict.value === 'allow' && card.request.kind === 'tool') {
      const { conversationId, effects } = card.request;
      const list = unused.get(conversationId) ?? [];
      unused.set(conversationId, [...list, { approvalId: card.approvalId, receiptId: verdict.receiptId, effects }]);
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

  const turnIdOf = (turnId: string | null): { turnId?: string } => (turnId === null ? {} : { turnId });

  const appendReceipt = (tx: Tx, row: ReceiptRow, turnId: string | null): void => {
    if (row.conversationId === null) return;
    const data: EventData<'receipt'> = {
      receiptId: row.receiptId, receiptSeq: row.seq, kind: row.kind, sentence: row.sentence,
      ...(row.approvalId === null ? {} : { approvalId: row.approvalId }),
      ...(row.outcome === null ? {} : { outcome: row.outcome }),
    };
    tx.append(row.conversationId, { type: 'receipt', data, ...turnIdOf(turnId) });
  };

  /** Any change of the rules: a new generation and its signed record, in the transaction of the change. */
  const sealRules = (tx: Tx, actor: Actor | null, conversationId: string | undefined, change: string, rule: RuleRow): ReceiptRow => {
    const next = generation(tx) + 1;
    tx.setMeta(generationName, String(next));
    const { ruleId, effect, kind, agentId, workspaceId, match } = rule;
    const detail = { change, rule: { ruleId, effect, kind, agentId, workspaceId, match }, version: next, digest: policyDigest(tx.rules()) };
    const words = `Rule ${change}: ${rule.sentence}`.slice(0, 500);
    return seal.sign(tx, { kind: 'policy', conversationId, actor, detail, sentence: words });
  };

  const remember = (tx: Tx, card: Waiting, value: 'allow' | 'deny', actor: Actor | null): void => {
    const { rule } = card;
    if (rule === null) throw new Refusal('decision_not_offered', { message: 'No exact rule can be saved for this action.' });
    const effect = value === 'allow' ? 'allow' : 'reject';
    const rules = tx.rules();
    const known = rules.find((row) => row.effect === effect && row.match === rule.match);
    if (known === undefined && !hasRoom(rules)) throw new Refusal('decision_not_offered', { message: 'As many rules are saved as allowed. Remove one first.' });
    const row: RuleRow = known ?? {
      ruleId: uuidv7(now(), randomBytes), effect, kind: rule.kind, agentId: rule.agentId, workspaceId: rule.workspaceId, match: rule.match,
      sentence: ruleSentence(effect, card.request), createdAt: now(), hits: 0, lastHitAt: null, enabled: true,
    };
    if (known === undefined) tx.putRule(row);
    else tx.changeRule(known.ruleId, { enabled: true });
    appendReceipt(tx, sealRules(tx, actor, card.request.conversationId, 'saved', row), card.request.turnId);
  };

  const signRuling = (tx: Tx, card: Waiting, ruling: Ruling, word: string): ReceiptRow =>
    seal.decision(tx, {
      approvalId: card.approvalId, request: card.request, requestedAt: card.requestedAt, digest: card.digest, actionBytes: card.actionBytes,
      policy: { version: generation(tx), digest: policyDigest(tx.rules()), rule: ruling.rule, outcome: ruling.policyOutcome },
      decision: {
        value: ruling.value, option: ruling.optionId, by: ruling.by, session: ruling.session,
        remembered: ruling.remember, expiresAt: card.expiresAt, proof: ruling.proof,
      },
      note: ruling.note, sentence: sentenceOf(word, card.request.facts.headline),
    });

  /** The one transaction of a decision: state, event, receipt, and the remembered rule. False where another was first. */
  const resolve = (tx: Tx, card: Waiting, ruling: Ruling, actor: Actor | null): ReceiptRow | null => {
    const row = signRuling(tx, card, ruling, ruling.value === 'allow' ? 'Allowed' : 'Denied');
    const state = ruling.value === 'allow' ? 'allowed' : 'denied';
    const note = ruling.note ?? null;
    const rule = ruling.ruleSentence ?? ruling.rule;
    if (!tx.resolveApproval(card.approvalId, { state, decidedAt: row.at, receiptId: row.receiptId, by: ruling.by, rule, note })) return null;
    const data: EventData<'approval.decided'> = {
      approvalId: card.approvalId, digest: card.digest, value: ruling.value, optionId: ruling.optionId, by: ruling.by, receiptId: row.receiptId,
      ...(rule === null ? {} : { rule }),
      ...(ruling.note === undefined ? {} : { note: ruling.note }),
      ...(ruling.remember ? { remembered: true } : {}),
    };
    appended(tx.append(card.request.conversationId, { type: 'approval.decided', data, ...turnIdOf(card.request.turnId) }));
    appendReceipt(tx, row, card.request.turnId);
    if (ruling.remember) remember(tx, card, ruling.value, actor);
    if (ruling.value === 'allow') tx.setMeta(unfinishedName, JSON.stringify([...unfinished(tx), card.approvalId]));
    return row;
  };

  const changed = (...topics: Parameters<typeof ledger.feed.invalidate>[0][]): void => topics.forEach((topic) => ledger.feed.invalidate(topic));

  const requested = (tx: Tx, card: Waiting, action: Uint8Array): void => {
    const { request } = card;
    const data: EventData<'approval.requested'> = {
      approvalId: card.approvalId, kind: request.kind, digest: card.digest, actionBytes: card.actionBytes, facts: request.facts,
      words: request.words, options: [...request.options], rule: card.rule, expiresAt: card.expiresAt,
      enforcement: request.agent.enforcement, containment: request.agent.containment,
      ...(request.toolCallId === null ? {} : { toolCallId: request.toolCallId }),
    };
    const event = appended(tx.append(request.conversationId, { type: 'approval.requested', data, ...turnIdOf(request.turnId) }));
    tx.putAction(card.digest, action, request.conversationId);
    tx.putApproval({
      approvalId: card.approvalId, conversationId: request.conversationId, turnId: request.turnId, toolCallId: request.toolCallId,
      kind: request.kind, digest: card.digest, state: 'pending', requestedAt: card.requestedAt, requestedSeq: event.seq, expiresAt: card.expiresAt,
      decidedAt: null, receiptId: null, reason: null, by: null, rule: null, note: null, outcome: null, request: JSON.stringify(event.data),
    });
  };

  /** What decides without asking, in this order: reject rule, remembered allow rule, standing answer. */
  const automatic = (card: Waiting, policy: PolicyVerdict): Ruling | null => {
    const always = standing.get(card.request.conversationId);
    const value = policy.verdict === 'ask' ? always?.value : policy.verdict === 'allow' ? 'allow' : 'deny';
    if (value === undefined) return null;
    const option = optionFor(card.request.options, value);
    if (option === undefined) return null;
    const rule = policy.verdict === 'ask' ? (always?.rule ?? null) : policy.ruleId;
    const words = policy.verdict === 'ask' ? undefined : `${policy.ruleId} ${policy.sentence}`.slice(0, 1000);
    return { ...ruleBase, value, optionId: option.id, rule, ruleSentence: words, policyOutcome: policy.verdict };
  };

  const verdictOf = (card: Waiting, ruling: Ruling, receiptId: string): Verdict => ({
    value: ruling.value, approvalId: card.approvalId, receiptId, optionId: ruling.optionId,
    ...(ruling.note === undefined ? {} : { note: ruling.note }),
  });

  const expireIn = (tx: Tx, card: Waiting): boolean => {
    if (tx.approval(card.approvalId)?.state !== 'pending') return false;
    const { conversationId, turnId, options: choices } = card.request;
    const row = signRuling(tx, card, { ...ruleBase, value: 'deny', optionId: optionFor(choices, 'deny')?.id ?? '', rule: 'expired', policyOutcome: 'ask' }, 'Expired');
    tx.resolveApproval(card.approvalId, { state: 'expired', decidedAt: row.at, receiptId: row.receiptId, by: 'rule' });
    tx.append(conversationId, { type: 'approval.expired', data: { approvalId: card.approvalId, receiptId: row.receiptId }, ...turnIdOf(turnId) });
    appendReceipt(tx, row, turnId);
    return true;
  };

  const expire = async (card: Waiting): Promise<void> => {
    try {
      if (!(await ledger.commit((tx) => expireIn(tx, card)))) return; // a decision or a withdrawal came first and settles it
      changed('approvals', 'receipts');
    } catch (error) {
      // Telling the agent no needs no receipt; leaving it waiting for ever would be worse.
      options.log('expiry was not recorded', { approvalId: card.approvalId, code: error instanceof Refusal ? error.code : 'internal_error' });
    }
    settle(card, { value: 'expired', approvalId: card.approvalId });
  };

  const withdrawCards = async (cards: readonly Waiting[], reason: WithdrawReason): Promise<void> => {
    if (cards.length === 0) return;
    const gone: Waiting[] = [];
    try {
      await ledger.commit((tx) => {
        for (const card of cards) {
          if (!withdrawIn(tx, card.approvalId, card.request.conversationId, card.request.turnId, reason)) continue;
          gone.push(card);
        }
      });
      changed('approvals');
    } catch (error) {
      gone.splice(0, gone.length, ...cards); // nothing was allowed, and the caller is ending them: no waiter may hang
      throw error;
    } finally {
      for (const card of gone) settle(card, { value: 'withdrawn', approvalId: card.approvalId, reason });
    }
  };

  const withdrawIn = (tx: Tx, approvalId: string, conversationId: string, turnId: string | null, reason: WithdrawReason): boolean => {
    if (!tx.resolveApproval(approvalId, { state: 'withdrawn', decidedAt: now(), reason })) return false;
    tx.append(conversationId, { type: 'approval.withdrawn', data: { approvalId, reason }, ...turnIdOf(turnId) });
    return true;
  };

  const openCard = (request: ApprovalRequest, action: { bytes: Uint8Array; digest: string }, done: (verdict: Verdict) => void): Waiting => {
    const requestedAt = now();
    return {
      approvalId: uuidv7(requestedAt, randomBytes), request, digest: action.digest, actionBytes: action.bytes.length,
      requestedAt, expiresAt: requestedAt + limits.approvalMs, rule: offerRule(request), trust: null,
      resolve: done, timer: null, stopListening: () => undefined,
    };
  };

  const waitFor = (card: Waiting): void => {
    if (!waiting.has(card.approvalId)) return; // decided between the commit and now
    card.timer = timers.set(() => void expire(card), limits.approvalMs);
    const { signal } = card.request;
    if (signal === undefined) return;
    const abort = (): void => {
      withdrawCards([card], 'agent').catch(() => options.log('withdrawal was not recorded', { approvalId: card.approvalId }));
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    card.stopListening = () => signal.removeEventListener('abort', abort);
  };

  const ask = async (request: ApprovalRequest): Promise<Verdict> => {
    const open = [...waiting.values()].filter((card) => card.request.conversationId === request.conversationId).length;
    if (open >= limits.approvalsPending) throw new Refusal('rate_limited', { message: 'Too many approvals are waiting in this conversation.' });
    const action = actionOf(request);
    const { promise, resolve: done, reject } = Promise.withResolvers<Verdict>();
    const card = openCard(request, action, done);
    // Known before the commit: its event reaches clients first, and an answer may arrive before this function goes on.
    waiting.set(card.approvalId, card);
    try {
      const ruled = await ledger.commit((tx) => {
        card.trust = trustOf(tx, request.workspace.id);
        requested(tx, card, action.bytes);
        const policy = evaluate(tx.rules(), card.rule);
        const ruling = automatic(card, policy);
        if (ruling === null) return null;
        const row = resolve(tx, card, ruling, null);
        if (row === null) throw new Refusal('internal_error');
        if (policy.verdict !== 'ask') tx.hitRule(policy.ruleId, row.at);
        return { ruling, receiptId: row.receiptId };
      });
      changed('approvals');
      if (ruled === null) waitFor(card);
      else settle(card, verdictOf(card, ruled.ruling, ruled.receiptId));
      if (ruled !== null) changed('receipts');
    } catch (error) {
      waiting.delete(card.approvalId);
      reject(error);
    }
    return promise;
  };

  /** The proof of R-20 for a page; for the private socket an operator at a terminal, or an explicit and recorded `--yes`. */
  const prove = (actor: Actor, params: Decide, digest: string): Pick<Ruling, 'by' | 'session' | 'proof'> => {
    if (actor.kind !== 'browser') {
      if (!actor.tty && params.yes !== true) throw new Refusal('forbidden', { message: 'Deciding without a terminal needs --yes.' });
      const by = actor.kind === 'cli' ? 'control-socket' : 'terminal';
      return { by: 'cli', session: null, proof: { by, ...(params.yes === true ? { mark: '--yes' } : {}) } };
    }
    const { proof } = params;
    const signature = proof === undefined ? null : fromBase64(proof.sig, 'base64url');
    if (proof === undefined || signature === null || proof.keyId !== actor.keyId) throw new Refusal('invalid_proof');
    const said = decisionProofText({ approval: params.approvalId, digest, option: params.optionId, value: params.value, noteSha256: sha256(params.note ?? '') });
    if (!options.verifyProof(actor.publicKeySpki, utf8(said), signature)) throw new Refusal('invalid_proof');
    return { by: 'operator', session: actor.sessionId, proof: { by: 'browser', keyId: proof.keyId, sig: proof.sig } };
  };

  /** Rules and trust as they are now must still let this answer stand; what changed is reviewed once more. */
  const checkPolicy = (tx: Tx, card: Waiting, params: Decide): PolicyVerdict => {
    const policy = evaluate(tx.rules(), card.rule);
    if (params.value === 'deny') return policy;
    if (policy.verdict === 'reject') throw new Refusal('stale_policy');
    const trust = trustOf(tx, card.request.workspace.id);
    if (trust === card.trust) return policy;
    card.trust = trust;
    throw new Refusal('stale_policy', { message: 'The trusted files of this folder changed while this was open. Review it again.' });
  };

  const isOperator = (actor: Actor): boolean => actor.kind !== 'cli' || actor.operator;

  const decide: Desk['decide'] = async (actor, params, store) => {
    if (!isOperator(actor)) throw new Refusal('forbidden');
    const decided = await ledger.commit((tx) => {
      const record = tx.approval(params.approvalId);
      if (record === null) throw new Refusal('unknown_approval');
      if (record.state !== 'pending') throw resolvedRefusal(record.state);
      const card = waiting.get(params.approvalId);
      if (card === undefined) throw new Refusal('approval_withdrawn'); // its waiter ended; recovery will say so in the log
      if (params.digest !== record.digest) throw new Refusal('digest_mismatch');
      const proven = prove(actor, params, record.digest);
      const option = offered(card.request.options, params);
      const policy = checkPolicy(tx, card, params);
      // A proof is worth what its key is worth: the receipt with the page key precedes the first decision signed by it.
      if (actor.kind === 'browser') seal.session(tx, actor);
      const ruling: Ruling = {
        ...proven, value: params.value, optionId: option.id, rule: null, policyOutcome: policy.verdict,
        remember: params.remember === true, note: params.note === '' ? undefined : params.note,
      };
      const row = resolve(tx, card, ruling, actor);
      if (row === null) throw new Refusal('approval_already_decided');
      const answer = { receiptId: row.receiptId, receiptSeq: row.seq };
      store?.(tx, answer);
      return { card, ruling, answer };
    });
    // Only now, after COMMIT, may the agent hear of it: nothing runs without a durable receipt.
    settle(decided.card, verdictOf(decided.card, decided.ruling, decided.answer.receiptId));
    changed('approvals', 'receipts', ...(decided.ruling.remember ? (['rules'] as const) : []));
    return decided.answer;
  };

  const outcomeIn = (tx: Tx, approvalId: string, outcome: Parameters<Desk['outcome']>[1], result: Parameters<Desk['outcome']>[2]): boolean => {
    const record = tx.approval(approvalId);
    if (record === null || record.state !== 'allowed' || record.outcome !== null || record.receiptId === null) return false;
    const decision = tx.receipt(record.receiptId);
    if (decision === null) throw new Refusal('integrity_error');
    const said = decision.sentence.replace(/^Allowed: /, '');
    const row = seal.outcome(tx, {
      decision, outcome, resultSha256: result.resultSha256 ?? null, startedAt: result.startedAt, endedAt: result.endedAt,
      sentence: `${outcomeWords[outcome]}: ${said}${result.sentence === undefined ? '' : ` (${result.sentence})`}`,
    });
    tx.setApprovalOutcome(approvalId, outcome);
    tx.setMeta(unfinishedName, JSON.stringify(unfinished(tx).filter((id) => id !== approvalId)));
    appendReceipt(tx, row, record.turnId);
    return true;
  };

  const changeRule: Desk['changeRule'] = async (actor, ruleId, change) => {
    if (!isOperator(actor)) throw new Refusal('forbidden');
    const receiptId = await ledger.commit((tx) => {
      const rule = tx.rules().find((row) => row.ruleId === ruleId);
      if (rule === undefined) throw new Refusal('unknown_rule');
      tx.changeRule(ruleId, change === 'remove' ? 'remove' : { enabled: change === 'enable' });
      const words = { remove: 'removed', disable: 'turned off', enable: 'turned on' } as const;
      return sealRules(tx, actor, undefined, words[change], rule).receiptId;
    });
    changed('rules', 'receipts');
    return { receiptId };
  };

  return {
    ask,
    decide,
    changeRule,

    withdraw: async (where, reason) => {
      const meant = (card: Waiting): boolean =>
        card.request.conversationId === where.conversationId &&
        (where.approvalId === undefined || card.approvalId === where.approvalId) &&
        (where.toolCallId === undefined || card.request.toolCallId === where.toolCallId);
      // The turn or the conversation ended: what was allowed in it and not used is not for the next one.
      if (where.approvalId === undefined && where.toolCallId === undefined) unused.delete(where.conversationId);
      await withdrawCards([...waiting.values()].filter(meant), reason);
    },

    outcome: async (approvalId, outcome, result) => {
      forgetUnused(approvalId);
      if (await ledger.commit((tx) => outcomeIn(tx, approvalId, outcome, result))) changed('receipts');
    },

    consume: (conversationId, effect) => {
      const found = unused.get(conversationId)?.find((entry) => sameEffect(entry.effects, effect));
      if (found === undefined) return null;
      forgetUnused(found.approvalId);
      return { approvalId: found.approvalId, receiptId: found.receiptId };
    },

    standing: (conversationId, answer) => {
      if (answer === null) standing.delete(conversationId);
      else standing.set(conversationId, answer);
    },

    list: (params) => {
      const limit = Math.min(Math.max(params.limit ?? 100, 1), 100);
      const { state, conversationId, before } = params;
      const records = ledger.read.approvals({ state, conversationId, before, limit: limit + 1 });
      return { approvals: records.slice(0, limit).map((record) => approvalView(ledger.read, record)), more: records.length > limit };
    },

    get: (approvalId) => {
      const record = ledger.read.approval(approvalId);
      return record === null ? null : approvalView(ledger.read, record);
    },

    rules: () => {
      const rules = ledger.read.rules();
      return { generation: generation(ledger.read), digest: policyDigest(rules), rules: ruleViews(ledger.read, rules) };
    },

    recover: (tx) => {
      for (;;) {
        const pending = tx.approvals({ state: 'pending', limit: 100 });
        if (pending.length === 0) break;
        for (const record of pending) withdrawIn(tx, record.approvalId, record.conversationId, record.turnId, 'bridge_restarted');
      }
      for (const approvalId of unfinished(tx)) {
        outcomeIn(tx, approvalId, 'uncertain', { startedAt: tx.approval(approvalId)?.decidedAt ?? now(), endedAt: now() });
      }
      tx.setMeta(unfinishedName, '[]');
    },

    close: () => {
      for (const card of [...waiting.values()]) settle(card, { value: 'withdrawn', approvalId: card.approvalId, reason: 'bridge_restarted' });
      unused.clear();
    },
  };
};

const outcomeWords = { ok: 'Done', failed: 'Failed', cancelled: 'Cancelled', uncertain: 'Not known whether it happened' } as const;
