/**
 * The policy, pure: rules and a request in, a verdict out. Order: reject rules, remembered allow rules, ask.
 * A rule matches exactly or not at all; whatever cannot be compared asks. Called by the desk inside its transaction.
 */
import { createHash } from 'node:crypto';
import type { ActionKind, RuleOffer } from '#protocol/events.ts';
import { canonical, type Json } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import type { RuleDraft } from '#protocol/policy.ts';
import type { RuleRow } from '../ledger/contract.ts';
import type { ApprovalRequest } from './contract.ts';

export type PolicyVerdict =
  | { readonly verdict: 'ask' }
  | { readonly verdict: 'allow' | 'reject'; readonly ruleId: string; readonly sentence: string };

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Without what a file was before: a rule is about what is written and run, and must match again after it happened. */
const withoutBase = (detail: Json): Json => {
  if (detail === null || typeof detail !== 'object' || !('base' in detail)) return detail;
  return Object.fromEntries(Object.entries(detail).filter(([name]) => name !== 'base'));
};

/**
 * Digest of what a rule is bound to: the same effects and detail, by the same program, in the same directory.
 * Conversation, turn, tool call and nonce are left out; another executable or another root asks again.
 */
export const matchDigest = (
  request: Pick<ApprovalRequest, 'kind' | 'agent' | 'workspace' | 'effects' | 'detail'>,
): string =>
  sha256(
    canonical({
      kind: request.kind,
      agent: {
        id: request.agent.id,
        executableSha256: request.agent.executableSha256,
        entrySha256: request.agent.entrySha256,
      },
      workspace: { id: request.workspace.id, rootSha256: request.workspace.rootSha256 },
      effects: request.effects,
      detail: withoutBase(request.detail),
    }),
  );

const verbs: Partial<Record<ActionKind, string>> = {
  'file.write': 'write exactly this content',
  command: 'run exactly this command',
  tool: 'do exactly this',
};

/** The rule in plain words, for either effect. */
export const ruleSentence = (effect: 'allow' | 'reject', request: ApprovalRequest): string => {
  const verb = `${effect === 'allow' ? 'may' : 'may not'} ${verbs[request.kind] ?? 'do exactly this'}`;
  return `${request.agent.name} ${verb} in ${request.workspace.path}: ${request.facts.headline}`
    .toWellFormed()
    .slice(0, 1000);
};

/** The exact rule an "always" would save; null where nothing exact is known, or the kind is decided each time. */
export const offerRule = (request: ApprovalRequest): RuleOffer | null => {
  if (request.facts.uninspectable || verbs[request.kind] === undefined) return null;
  if (request.facts.risks.some((risk) => risk.code === 'unannounced')) return null;
  const draft: RuleDraft = {
    effect: 'allow',
    agentId: request.agent.id,
    workspaceId: request.workspace.id,
    match: { by: 'exact', digest: matchDigest(request) },
    expiresAt: null,
    uses: null,
    limit: null,
  };
  return { scopes: [{ draft, sentence: ruleSentence('allow', request), matches: [], misses: [] }] };
};

/** What an exact rule is compared with: the digest of the offered exact scope. */
export const exactDigest = (offer: RuleOffer | null): string | null => {
  const match = offer?.scopes[0]?.draft.match;
  return match?.by === 'exact' ? match.digest : null;
};

/** What the rules say of a request; without an offer nothing can match. */
export const evaluate = (rules: readonly RuleRow[], offer: RuleOffer | null): PolicyVerdict => {
  const digest = exactDigest(offer);
  if (digest === null) return { verdict: 'ask' };
  for (const effect of ['reject', 'allow'] as const) {
    // The digest covers kind, agent and workspace too.
    const rule = rules.find((each) => each.effect === effect && each.enabled && each.match === digest);
    if (rule !== undefined) return { verdict: effect, ruleId: rule.ruleId, sentence: rule.sentence };
  }
  return { verdict: 'ask' };
};

/** Digest over everything that can change a verdict; the receipt's `policy.digest`. */
export const policyDigest = (rules: readonly RuleRow[]): string =>
  sha256(
    canonical(
      rules
        .map(({ ruleId, effect, kind, agentId, workspaceId, match, enabled }) => ({
          ruleId,
          effect,
          kind,
          agentId,
          workspaceId,
          match,
          enabled,
        }))
        .sort((a, b) => (a.ruleId < b.ruleId ? -1 : 1)),
    ),
  );

export const hasRoom = (rules: readonly RuleRow[]): boolean => rules.length < limits.rules;
