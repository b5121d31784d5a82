/**
 * The policy, pure and total: rules and a request in, a verdict with its reason out (R-15). Order: reject rules, the
 * always-ask list, the trust gate, allow rules, ask. Reject goes first because it can only say no: nothing that is put
 * on the always-ask list may turn a no into a question. Whatever cannot be compared asks. Called by the desk inside its
 * transaction, and by the rulebook for trying rules.
 */
import { createHash } from 'node:crypto';
import { canonical } from '#protocol/json.ts';
import type { PolicyAnswer, RuleDraft } from '#protocol/policy.ts';
import { visible } from './inert.ts';
import { fitOf, floorOf, isNarrow } from './policy/matching.ts';
import { readOnlyCommands } from './policy/presets.ts';
import { isCommand, type PolicyRequest } from './policy/request.ts';

/** A rule and as much of its history as a verdict depends on. */
export interface Rule {
  readonly ruleId: string;
  readonly sentence: string;
  readonly enabled: boolean;
  readonly draft: RuleDraft;
  /** Matches since the draft was saved. */
  readonly used: number;
  /** Matches within the span of its limit; 0 without one. */
  readonly recent: number;
}

const short = (text: string): string => `“${text.length > 300 ? `${text.slice(0, 299).toWellFormed()}…` : text}”`;
/** A name says more than a sentence where it is about all that a rule stops. */
const quoted = ({ draft, sentence }: Rule): string =>
  short(draft.effect === 'allow' || draft.title === undefined ? sentence : visible(draft.title));

/** Why a rule does not count at this moment, whatever the request. */
const lapsed = ({ enabled, draft, used, recent }: Rule, at: number): string | null => {
  if (!enabled) return 'it is turned off';
  if (draft.expiresAt !== null && draft.expiresAt <= at) return 'it has expired';
  if (draft.uses !== null && used >= draft.uses) return 'it is used up';
  if (draft.limit !== null && recent >= draft.limit.count) return 'its limit is reached';
  return null;
};

/** Reading and searching inside, and commands that only read: what may be automatic without trust (R-18). */
const onlyReads = (request: PolicyRequest): boolean => {
  if (!isCommand(request.facts)) return request.effects.every((effect) => effect === 'read' || effect === 'search');
  const scope = {
    effect: 'allow',
    agentId: null,
    workspaceId: null,
    expiresAt: null,
    uses: null,
    limit: null,
  } as const;
  return readOnlyCommands.some(
    ({ runsSettings, ...words }) =>
      !runsSettings && fitOf({ ...scope, match: { by: 'command', ...words } }, request).fit === 'match',
  );
};

/** What keeps an allow rule that is about this request from deciding it. */
const obstacle = (rule: Rule, request: PolicyRequest, asks: Rule | undefined, at: number): string | null => {
  const past = lapsed(rule, at);
  if (past !== null) return past;
  if (!request.answerable) return 'the agent offers no plain way to allow it once';
  const floor = isNarrow(rule.draft) ? null : floorOf(request);
  if (floor !== null) return floor;
  if (asks !== undefined && (!isNarrow(rule.draft) || isNarrow(asks.draft))) return `${quoted(asks)} always asks`;
  if (onlyReads(request) && floorOf(request) === null) return null;
  if (!request.trusted) return 'what the trust review of this folder found is not accepted';
  return request.paused;
};

/** `at`: milliseconds since the epoch. Never throws. */
export const evaluate = (rules: readonly Rule[], request: PolicyRequest, at: number): PolicyAnswer => {
  const acting = (effect: RuleDraft['effect']): Rule | undefined =>
    rules.find(
      (rule) => rule.draft.effect === effect && lapsed(rule, at) === null && fitOf(rule.draft, request).fit === 'match',
    );
  const rejecting = acting('reject');
  if (rejecting !== undefined) {
    return {
      verdict: 'reject',
      because: `Refused by the rule ${quoted(rejecting)}.`,
      ruleId: rejecting.ruleId,
      near: [],
    };
  }
  const asking = acting('ask');
  const near: PolicyAnswer['near'] = [];
  for (const rule of rules) {
    if (rule.draft.effect !== 'allow') continue;
    const fit = fitOf(rule.draft, request);
    if (fit.fit === 'none') continue;
    const why = fit.fit === 'near' ? fit.why : obstacle(rule, request, asking, at);
    if (why === null) {
      return { verdict: 'allow', because: `Allowed by the rule ${quoted(rule)}.`, ruleId: rule.ruleId, near: [] };
    }
    if (near.length < 10) near.push({ ruleId: rule.ruleId, sentence: rule.sentence, why: why.slice(0, 500) });
  }
  return { verdict: 'ask', because: whyAsked(asking, near).slice(0, 1000), ruleId: asking?.ruleId ?? null, near };
};

const whyAsked = (asking: Rule | undefined, near: PolicyAnswer['near']): string => {
  const [first] = near;
  if (asking !== undefined) return `Asked because of the rule ${quoted(asking)}.`;
  if (first === undefined) return 'Asked because no rule is about this.';
  return `Asked because ${short(first.sentence)} would match, but ${first.why}.`;
};

/** Digest over everything the rules say, whatever they counted; the receipt's `policy.digest`. */
export const policyDigest = (rules: readonly Pick<Rule, 'ruleId' | 'enabled' | 'draft'>[]): string =>
  createHash('sha256')
    .update(
      canonical(
        rules
          .map(({ ruleId, enabled, draft }) => ({ ruleId, enabled, draft }))
          .sort((a, b) => (a.ruleId < b.ruleId ? -1 : 1)),
      ),
    )
    .digest('hex');
