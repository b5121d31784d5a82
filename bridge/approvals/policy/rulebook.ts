/**
 * The operator's verbs on the rules, each one transaction with its signed receipt, in force for the next
 * request; and what only looks: preview, suggestions, trying. The rule not to break: nothing a project or an agent says
 * changes a rule. Used by the command table.
 */
import { isOperator, type Actor } from '#protocol/actor.ts';
import { Refusal } from '#protocol/errors.ts';
import { canonical } from '#protocol/json.ts';
import { presets, ruleFile, type RuleDraft, type RuleSource } from '#protocol/policy.ts';
import { explain, z } from '#protocol/schema.ts';
import type { Ledger, Reads, RuleRow, Tx } from '../../ledger/contract.ts';
import type { Rulebook, Seal } from '../contract.ts';
import { evaluate, type Rule } from '../policy.ts';
import { ruleViews } from '../views.ts';
import { covers } from './matching.ts';
import { scopeOf } from './offers.ts';
import { presetRules } from './presets.ts';
import { policyRequest } from './request.ts';
import {
  checkRoom,
  draftOf,
  generation,
  presetName,
  presetOf,
  rowOf,
  rulesAt,
  rulesDigest,
  saveRule,
  signRuleChange,
} from './rules.ts';
import { problemOf, ruleSentence, type RuleNames } from './sentences.ts';

export interface RulebookOptions {
  readonly ledger: Ledger;
  readonly seal: Pick<Seal, 'sign'>;
  readonly now: () => number;
  /** Title of an agent; null where it is not set up. */
  readonly agentTitle: (agentId: string) => string | null;
}

const namesOf = (read: Pick<Reads, 'workspaces'>, agentTitle: RulebookOptions['agentTitle']): RuleNames => {
  const paths = new Map(read.workspaces().map(({ workspaceId, path }) => [workspaceId, path]));
  const titles = new Map<string, string | null>();
  const agent = (agentId: string): string | null => {
    // Looking an agent up searches PATH: once for each.
    const title = titles.get(agentId) ?? agentTitle(agentId);
    titles.set(agentId, title);
    return title;
  };
  return { agent, workspace: (workspaceId) => paths.get(workspaceId) ?? null };
};

export const createRulebook = (options: RulebookOptions): Rulebook => {
  const { ledger, seal, now } = options;
  const names = (read: Reads): RuleNames => namesOf(read, options.agentTitle);

  const change = async <T>(
    actor: Actor,
    work: (tx: Tx, at: number) => T,
    store?: (tx: Tx, answer: T) => void,
  ): Promise<T> => {
    if (!isOperator(actor)) throw new Refusal('forbidden');
    const answer = await ledger.commit((tx) => {
      const done = work(tx, now());
      store?.(tx, done);
      return done;
    });
    ledger.feed.invalidate('rules');
    ledger.feed.invalidate('receipts');
    return answer;
  };

  /** The rows of one source become exactly these; those that said the same keep their history. Returns all that changed. */
  const replace = (tx: Tx, source: RuleSource, drafts: readonly RuleDraft[], at: number): RuleRow[] => {
    const rows = tx.rules();
    const wanted = new Map(drafts.map((draft) => [canonical(draft), draft]));
    const before = rows.filter((row) => row.source === source).map((row) => ({ row, key: canonical(draftOf(row)) }));
    const gone = before.filter(({ key }) => !wanted.delete(key)).map(({ row }) => row);
    const known = names(tx);
    const added = [...wanted.values()].map((draft) => rowOf(draft, source, ruleSentence(draft, known), at));
    checkRoom([...rows.filter((row) => !gone.includes(row)), ...added]);
    for (const row of gone) tx.changeRule(row.ruleId, 'remove');
    for (const row of added) tx.putRule(row);
    return [...gone, ...added];
  };

  const sayProblem = (drafts: readonly RuleDraft[], at: number): void => {
    for (const [index, draft] of drafts.entries()) {
      const problem = problemOf(draft, at);
      if (problem !== null) throw new Refusal('invalid_rule', { message: `Rule ${String(index + 1)}: ${problem}` });
    }
  };

  return {
    get: () => {
      const { read } = ledger;
      const rules = ruleViews(read, read.rules(), draftOf);
      return { generation: generation(read), digest: rulesDigest(read), preset: presetOf(read), rules };
    },

    presets: () => ({
      presets: presets.map((preset) => ({
        preset,
        rules: presetRules[preset].map((draft) => ({ draft, sentence: ruleSentence(draft, names(ledger.read)) })),
      })),
    }),

    put: (actor, { draft, ruleId }, store) =>
      change(
        actor,
        (tx, at) => {
          const known = ruleId === undefined ? undefined : tx.rules().find((row) => row.ruleId === ruleId);
          if (ruleId !== undefined && known === undefined) throw new Refusal('unknown_rule');
          if (known?.source === 'preset')
            throw new Refusal('invalid_rule', { message: 'The rules of a preset are turned off, not rewritten.' });
          const sentence = ruleSentence(draft, names(tx));
          if (known === undefined) {
            const row = saveRule(tx, draft, 'operator', sentence, at);
            return { ruleId: row.ruleId, receiptId: signRuleChange(tx, seal, actor, 'saved', [row]).receiptId };
          }
          sayProblem([draft], at);
          const row: RuleRow = {
            ...rowOf(draft, 'operator', sentence, at),
            ruleId: known.ruleId,
            hits: known.hits,
            createdAt: known.createdAt,
            lastHitAt: known.lastHitAt,
            enabled: known.enabled,
          };
          checkRoom([...tx.rules().filter((each) => each.ruleId !== row.ruleId), row]);
          tx.putRule(row);
          return { ruleId: row.ruleId, receiptId: signRuleChange(tx, seal, actor, 'rewritten', [row]).receiptId };
        },
        store,
      ),

    forget: (actor, { ruleId, change: how }, store) =>
      change(
        actor,
        (tx) => {
          const row = tx.rules().find((each) => each.ruleId === ruleId);
          if (row === undefined) throw new Refusal('unknown_rule');
          if (how === 'remove' && row.source === 'preset')
            throw new Refusal('invalid_rule', { message: 'The rules of a preset are turned off, not removed.' });
          tx.changeRule(ruleId, how === 'remove' ? 'remove' : { enabled: how === 'enable' });
          const words = { remove: 'removed', disable: 'turned off', enable: 'turned on' } as const;
          return { receiptId: signRuleChange(tx, seal, actor, words[how], [row]).receiptId };
        },
        store,
      ),

    load: (actor, { rules }, store) =>
      change(
        actor,
        (tx, at) => {
          sayProblem(rules, at);
          const changed = replace(tx, 'operator', rules, at);
          for (const row of tx.rules()) if (row.source === 'operator') tx.changeRule(row.ruleId, { enabled: true });
          return { receiptId: signRuleChange(tx, seal, actor, 'loaded', changed).receiptId, rules: rules.length };
        },
        store,
      ),

    preset: (actor, { preset }, store) =>
      change(
        actor,
        (tx, at) => {
          tx.setMeta(presetName, preset);
          const changed = replace(tx, 'preset', presetRules[preset], at);
          return { receiptId: signRuleChange(tx, seal, actor, `of the preset ${preset} chosen`, changed).receiptId };
        },
        store,
      ),

    preview: (draft, request) => {
      const scope = scopeOf(draft, names(ledger.read), request ?? undefined);
      const matchesRequest = request === null ? null : covers(draft, request);
      return { scope, problem: problemOf(draft, now()), matchesRequest };
    },

    suggestions: (workspaceId, text) => {
      if (text === null) return { rules: [], problem: null };
      const read = suggestionsOf(text, workspaceId);
      if (typeof read === 'string') return { rules: [], problem: read };
      const saved = new Set(ledger.read.rules().map((row) => canonical(draftOf(row))));
      const known = names(ledger.read);
      const rules = read.map((draft) => ({
        draft,
        sentence: ruleSentence(draft, known),
        saved: saved.has(canonical(draft)),
      }));
      return { rules, problem: null };
    },

    test: (request, trusted, drafts) => {
      const at = now();
      const known = names(ledger.read);
      const tried = drafts?.map((draft, index): Rule => ({
        ruleId: `00000000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`,
        sentence: ruleSentence(draft, known),
        enabled: true,
        draft,
        used: 0,
        recent: 0,
      }));
      return evaluate(tried ?? rulesAt(ledger.read, at), policyRequest(request, { trusted, paused: null }), at);
    },

    install: (tx) => {
      const isNew = tx.meta(presetName) === null;
      tx.setMeta(presetName, presetOf(tx));
      const changed = replace(tx, 'preset', presetRules[presetOf(tx)], now());
      if (changed.length > 0)
        signRuleChange(
          tx,
          seal,
          null,
          isNew ? `of the preset ${presetOf(tx)} installed` : `of the preset ${presetOf(tx)} updated`,
          changed,
        );
    },
  };
};

/** As many as one reads; the answer holds no more. */
const shownSuggestions = 50;

/** The drafts, for this workspace only whatever they say; or why there are none. */
const suggestionsOf = (text: string, workspaceId: string): RuleDraft[] | string => {
  try {
    const parsed = z.safeParse(ruleFile, JSON.parse(text));
    if (!parsed.success) return `It is not a list of rules: ${explain(parsed.error)}`.slice(0, 500);
    return parsed.data.rules.slice(0, shownSuggestions).map((rule) => ({ ...rule, workspaceId }));
  } catch {
    return 'It is not JSON.';
  }
};
