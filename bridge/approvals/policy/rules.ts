/**
 * The rules as rows: read for each request, saved, and each change signed with a new generation in its transaction. The
 * rule not to break: what cannot be read as a rule stops the request, for it might have been a no. Called by the desk,
 * by record.ts for what is remembered, and by the rulebook.
 */
import { randomBytes } from 'node:crypto';
import type { Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import { uuidv7 } from '#protocol/ids.ts';
import { canonical, type Json } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import { presets, ruleDraft, type Preset, type RuleDraft, type RuleSource } from '#protocol/policy.ts';
import { z } from '#protocol/schema.ts';
import type { Reads, ReceiptRow, RuleRow, Tx } from '../../ledger/contract.ts';
import type { Seal } from '../contract.ts';
import { policyDigest, type Rule } from '../policy.ts';
import { problemOf } from './sentences.ts';

const generationName = 'policy.generation';
export const presetName = 'policy.preset';
const digestName = 'policy.digest';

/** How often the rules changed. */
export const generation = (read: Pick<Reads, 'meta'>): number => Number(read.meta(generationName) ?? '0');
export const presetOf = (read: Pick<Reads, 'meta'>): Preset =>
  presets.find((name) => name === read.meta(presetName)) ?? 'careful';

/** @throws Refusal integrity_error */
export const draftOf = (row: Pick<RuleRow, 'draft'>): RuleDraft => {
  const parsed = z.safeParse(ruleDraft, JSON.parse(row.draft));
  if (!parsed.success) throw new Refusal('integrity_error', { cause: parsed.error });
  return parsed.data;
};
const same = (one: RuleDraft, other: RuleDraft): boolean => canonical(one) === canonical(other);

/** Drafts by their text, so that a thousand rules are not checked anew for each request. */
export type Drafts = Map<string, RuleDraft>;

/** The rules with as much of their history as counts at `at`. */
export const rulesAt = (read: Pick<Reads, 'rules' | 'ruleHits'>, at: number, drafts: Drafts = new Map()): Rule[] => {
  if (drafts.size > 2 * limits.rules) drafts.clear();
  return read.rules().map((row) => {
    const draft = drafts.get(row.draft) ?? draftOf(row);
    drafts.set(row.draft, draft);
    const { ruleId, sentence, enabled, used } = row;
    const recent = draft.limit === null ? 0 : read.ruleHits(ruleId, at - draft.limit.perMs);
    return { ruleId, sentence, enabled, used, draft, recent };
  });
};

const computeDigest = (read: Pick<Reads, 'rules'>): string =>
  policyDigest(read.rules().map((row) => ({ ...row, draft: draftOf(row) })));
/** Over all that the rules say; computed when they change, read for each receipt. */
export const rulesDigest = (read: Pick<Reads, 'rules' | 'meta'>): string =>
  read.meta(digestName) ?? computeDigest(read);

export const rowOf = (draft: RuleDraft, source: RuleSource, sentence: string, at: number): RuleRow => ({
  ruleId: uuidv7(at, randomBytes),
  source,
  draft: JSON.stringify(draft),
  sentence,
  createdAt: at,
  hits: 0,
  used: 0,
  lastHitAt: null,
  enabled: true,
});

/** All rules are read in one answer and looked through for each request. @throws Refusal invalid_rule */
export const checkRoom = (rows: readonly Pick<RuleRow, 'draft' | 'sentence'>[]): void => {
  const bytes = rows.reduce((sum, { draft, sentence }) => sum + Buffer.byteLength(draft + sentence), 0);
  if (rows.length > limits.rules || bytes > limits.rulesBytes)
    throw new Refusal('invalid_rule', { message: 'As many rules are saved as allowed. Remove one first.' });
};

/** A new rule, or the one that says the same, turned on. @throws Refusal invalid_rule */
export const saveRule = (tx: Tx, draft: RuleDraft, source: RuleSource, sentence: string, at: number): RuleRow => {
  const problem = problemOf(draft, at);
  if (problem !== null) throw new Refusal('invalid_rule', { message: problem });
  const rows = tx.rules();
  const known = rows.find((row) => row.source === source && same(draftOf(row), draft));
  const row = known ?? rowOf(draft, source, sentence, at);
  if (known === undefined) {
    checkRoom([...rows, row]);
    tx.putRule(row);
  } else tx.changeRule(known.ruleId, { enabled: true });
  return { ...row, enabled: true };
};

/** Any change of the rules: a new generation and its signed record, in the transaction of the change. */
export const signRuleChange = (
  tx: Tx,
  seal: Pick<Seal, 'sign'>,
  actor: Actor | null,
  change: string,
  rows: readonly RuleRow[],
  conversationId?: string,
): ReceiptRow => {
  const version = generation(tx) + 1;
  tx.setMeta(generationName, String(version));
  tx.setMeta(digestName, computeDigest(tx));
  const rules = rows.map((row) => ({ ruleId: row.ruleId, source: row.source, rule: JSON.parse(row.draft) as Json }));
  // A whole file of rules is named by the digest of the result; its bytes would not fit an action.
  const detail = {
    change,
    rules: rules.length > 100 ? rules.length : rules,
    preset: presetOf(tx),
    version,
    digest: rulesDigest(tx),
  };
  const [only] = rows;
  const what = rows.length === 1 && only !== undefined ? only.sentence : `${String(rows.length)} rules`;
  return seal.sign(tx, {
    kind: 'policy',
    conversationId,
    actor,
    detail,
    sentence: `${rows.length === 1 ? 'Rule' : 'Rules'} ${change}: ${what}`.slice(0, 500),
  });
};
