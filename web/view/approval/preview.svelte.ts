/** What the bridge says of a draft before it is saved: asked a moment after the last change, the latest answer counts. */
import type { Answer } from '#protocol/methods.ts';
import type { RuleDraft, RuleScope } from '#protocol/policy.ts';
import type { Failure, Outcome } from '#lib/state/contract.ts';
import { words } from '#lib/text/approval.en.ts';
import { lackOf } from './rule.ts';

/** Stands for one draft: `draft` is the very object that was asked about. */
export interface RuleCheck {
  readonly draft: RuleDraft;
  /** Null while it is being asked, or where it cannot be. */
  readonly scope: RuleScope | null;
  /** Why it may not be saved as it is; null where it may, or is not known yet. */
  readonly problem: string | null;
  readonly failure: Failure | null;
}
export type AskPreview = (draft: RuleDraft) => Promise<Outcome<Answer<'policy.preview'>>>;

/** A hand that goes on typing is not asked about. */
const restMs = 250;

export const mayBeSaved = (check: RuleCheck | null, draft: RuleDraft | null): boolean =>
  check !== null && draft !== null && check.draft === draft && check.scope !== null && check.problem === null;

export class RulePreview {
  #ask: AskPreview;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #answer = $state.raw<RuleCheck | null>(null);

  constructor(ask: AskPreview) {
    this.#ask = ask;
  }

  /** Of exactly this draft; `known` is what the bridge has said of it before. */
  of(draft: RuleDraft, known: RuleScope | undefined): RuleCheck {
    if (known?.draft === draft) return { draft, scope: known, problem: null, failure: null };
    const lack = lackOf(draft);
    if (lack !== null) return { draft, scope: null, problem: words.rule.lacks[lack], failure: null };
    return this.#answer?.draft === draft ? this.#answer : { draft, scope: null, problem: null, failure: null };
  }

  /** Starts asking; returns what gives it up. */
  ask(draft: RuleDraft, waitMs = restMs): () => void {
    let current = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      const answer = await this.#ask(draft);
      if (current) this.#answer = checkOf(draft, answer);
    }, waitMs);
    return () => {
      current = false;
      clearTimeout(this.#timer);
    };
  }
}

const checkOf = (draft: RuleDraft, answer: Outcome<Answer<'policy.preview'>>): RuleCheck => {
  if (!answer.ok) return { draft, scope: null, problem: null, failure: answer.failure };
  const { scope, problem, matchesRequest } = answer.value;
  return { draft, scope, problem: problem ?? (matchesRequest === false ? words.rule.notThis : null), failure: null };
};
