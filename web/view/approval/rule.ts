/** A rule draft under the editor's hands: what each control makes of it, and what is still missing. Pure. */
import { limits } from '#protocol/limits.ts';
import { ruleDraft, type RuleDraft, type RuleMatch, type RuleScope } from '#protocol/policy.ts';
import { z } from '#protocol/schema.ts';
import type { words } from '#lib/text/approval.en.ts';

export type MatchKind = RuleMatch['by'];
export type MatchOf<K extends MatchKind> = Extract<RuleMatch, { by: K }>;
export type Lack = keyof typeof words.rule.lacks;

/** One of those a rule can be for. */
export interface Choice {
  readonly id: string;
  readonly name: string;
}

/** A word that stands for any one argument, and a last one that stands for any further ones. */
export const anyWord = '*';
const anyMore = '**';

export interface Arguments {
  readonly words: readonly string[];
  readonly more: boolean;
}
export const argumentsOf = (args: readonly string[]): Arguments =>
  args.at(-1) === anyMore ? { words: args.slice(0, -1), more: true } : { words: args, more: false };
export const argsOf = ({ words: list, more }: Arguments): string[] => (more ? [...list, anyMore] : [...list]);

/** Of an operator's rule; `exact` has a digest nobody writes by hand. */
export const writtenKinds = ['command', 'text', 'path', 'tool', 'effect', 'risk'] as const;

/** A match of another kind, with nothing in it yet. */
export const emptyMatch = (by: MatchKind): RuleMatch => {
  if (by === 'command') return { by, program: '', args: [] };
  if (by === 'text') return { by, text: '', cwd: '' };
  if (by === 'path') return { by, glob: '', effects: ['write'] };
  if (by === 'tool') return { by, tool: '' };
  if (by === 'effect') return { by, effects: [] };
  if (by === 'risk') return { by, codes: [] };
  return { by, digest: '' };
};

/** A rule of either is about the same program or tool, so that what was seen of it still holds. */
const isSameThing = (a: RuleMatch, b: RuleMatch): boolean => {
  if (a.by === 'command' && b.by === 'command') return a.program === b.program;
  if (a.by === 'tool' && b.by === 'tool') return a.tool === b.tool && a.server === b.server;
  return a.by === b.by;
};

/** Another match; what the rule was bound to is let go where it is about another program or tool. */
export const withMatch = (draft: RuleDraft, match: RuleMatch): RuleDraft => {
  const { bound, ...rest } = draft;
  return { ...rest, match, ...(bound !== undefined && isSameThing(draft.match, match) ? { bound } : {}) };
};

/** Bound as the offered scope was, once it is about the same again. */
export const rebound = (draft: RuleDraft, offered: RuleDraft): RuleDraft =>
  offered.bound !== undefined && draft.bound === undefined && isSameThing(draft.match, offered.match)
    ? { ...draft, bound: offered.bound }
    : draft;

/** The same turned into a refusal: what was seen of a program does not soften a no. */
export const rejecting = ({ bound: _, ...draft }: RuleDraft): RuleDraft => ({ ...draft, effect: 'reject' });

/** What `always` or `never` starts from at an offered scope. */
export const startOf = (scope: RuleScope, effect: 'allow' | 'reject'): RuleDraft =>
  effect === 'allow' ? scope.draft : rejecting(scope.draft);

/** A whole number from 1, null for an empty field, NaN for anything else; NaN is told by `lackOf`. */
export const wholeNumber = (text: string): number | null => {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  return /^[1-9]\d{0,8}$/.test(trimmed) ? Number(trimmed) : NaN;
};

/** What keeps the draft from being one, or null. What else the bridge minds, it says in its preview. */
export const lackOf = (draft: RuleDraft): Lack | null => {
  const { match } = draft;
  if (match.by === 'command' && match.program === '') return 'program';
  if (match.by === 'text' && match.text === '') return 'text';
  if (match.by === 'path' && match.glob === '') return 'glob';
  if ((match.by === 'path' || match.by === 'effect') && match.effects.length === 0) return 'effects';
  if (match.by === 'tool' && match.tool === '') return 'tool';
  if (match.by === 'risk' && (match.codes.length === 0 || match.codes.includes(''))) return 'codes';
  if (draft.uses !== null && !(draft.uses > 0)) return 'uses';
  if (draft.limit !== null && !(draft.limit.count > 0)) return 'limit';
  return z.safeParse(ruleDraft, draft).success ? null : 'other';
};

/** With or without one of a fixed list, in the list's order. */
export const toggled = <T>(all: readonly T[], chosen: readonly T[], one: T): T[] =>
  all.filter((item) => (item === one ? !chosen.includes(item) : chosen.includes(item)));

/** Most arguments a rule may name; one place stays for the further ones. */
export const maxArguments = 49;
export const maxCodes = 50;
export const maxTextUnits = limits.ruleTextUnits;

/** What is matched, as short as it can be said; not the rule's sentence, which is the bridge's. */
export const matchText = (match: RuleMatch): string => {
  if (match.by === 'command') return [match.program, ...match.args].join(' ');
  if (match.by === 'path') return match.glob;
  if (match.by === 'tool') return match.tool;
  if (match.by === 'text') return match.text;
  if (match.by === 'risk') return match.codes.join(', ');
  return match.by === 'effect' ? match.effects.join(', ') : '';
};
