import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RuleDraft, RuleScope } from '#protocol/policy.ts';
import { words } from '../../web/text/approval.en.ts';
import { RulePreview, type AskPreview } from '../../web/view/approval/preview.svelte.ts';
import {
  argsOf,
  argumentsOf,
  emptyMatch,
  lackOf,
  rebound,
  startOf,
  toggled,
  wholeNumber,
  withMatch,
  writtenKinds,
} from '../../web/view/approval/rule.ts';

const draft: RuleDraft = {
  effect: 'allow',
  agentId: 'practice',
  workspaceId: null,
  match: { by: 'command', program: 'npm', args: ['test'] },
  bound: { executable: { path: '/usr/bin/npm', sha256: 'a'.repeat(64) } },
  expiresAt: null,
  uses: null,
  limit: null,
};
const scope = (of: RuleDraft): RuleScope => ({ draft: of, sentence: 'A rule.', matches: ['npm test'], misses: [] });

describe('a rule being edited (R-16)', () => {
  it('takes arguments apart and puts them together without changing one', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.constantFrom('*', '**', 'a b', ''), fc.string())), (args) => {
        expect(argsOf(argumentsOf(args))).toEqual(args);
      }),
    );
    expect(argumentsOf(['run', '**'])).toEqual({ words: ['run'], more: true });
    expect(argumentsOf(['**', 'run'])).toEqual({ words: ['**', 'run'], more: false });
  });

  it('lets the binding go when the program is another, and keeps it for other arguments', () => {
    const args = withMatch(draft, { by: 'command', program: 'npm', args: ['run', '**'] });
    expect(args.bound).toEqual(draft.bound);
    expect(withMatch(draft, { by: 'command', program: 'npx', args: ['test'] }).bound).toBeUndefined();
    expect(withMatch(draft, emptyMatch('path')).bound).toBeUndefined();
  });

  it('binds a rule again when it comes back to the program that was offered, and a refusal never', () => {
    const away = withMatch(draft, { by: 'command', program: 'np', args: ['test'] });
    expect(rebound(away, draft).bound).toBeUndefined();
    const back = withMatch(away, { by: 'command', program: 'npm', args: ['test'] });
    expect(rebound(back, draft).bound).toEqual(draft.bound);
    expect(rebound(back, startOf(scope(draft), 'reject')).bound).toBeUndefined();
  });

  it('makes a refusal of an offered scope that a changed program does not soften', () => {
    const refusal = startOf(scope(draft), 'reject');
    expect(refusal).toEqual({ ...draft, effect: 'reject', bound: undefined });
    expect('bound' in refusal).toBe(false);
    expect(startOf(scope(draft), 'allow')).toBe(draft);
  });

  it('says what is missing before anything is asked', () => {
    expect(lackOf(draft)).toBeNull();
    const lacking = (change: Partial<RuleDraft>) => lackOf({ ...draft, ...change });
    for (const kind of writtenKinds)
      if (kind !== 'path') expect(lacking({ match: emptyMatch(kind) }), kind).not.toBeNull();
    expect(lacking({ match: emptyMatch('path') })).toBe('glob');
    expect(lacking({ match: { by: 'path', glob: 'src/**', effects: [] } })).toBe('effects');
    expect(lacking({ match: { by: 'risk', codes: ['x', ''] } })).toBe('codes');
    expect(lacking({ uses: NaN })).toBe('uses');
    expect(lacking({ uses: 0 })).toBe('uses');
    expect(lacking({ limit: { count: NaN, perMs: 1000 } })).toBe('limit');
    expect(lacking({ match: { by: 'command', program: 'npm', args: Array(60).fill('x') } })).toBe('other');
  });

  it('reads whole numbers from 1 and nothing else', () => {
    expect(['', ' 3 ', '12'].map(wholeNumber)).toEqual([null, 3, 12]);
    for (const text of ['0', '-1', '1.5', '1e3', '0x10', 'many']) expect(wholeNumber(text), text).toBeNaN();
  });

  it('keeps the order of a list whatever is chosen first', () => {
    expect(toggled(['read', 'write', 'move'], ['move'], 'read')).toEqual(['read', 'move']);
    expect(toggled(['read', 'write', 'move'], ['read', 'move'], 'move')).toEqual(['read']);
  });
});

describe('the preview of a rule (R-16)', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const ground = (matchesRequest: boolean | null = true, problem: string | null = null) => {
    const asked: RuleDraft[] = [];
    const ask: AskPreview = async (of) => {
      asked.push(of);
      return { ok: true, value: { scope: scope(of), problem, matchesRequest } };
    };
    return { preview: new RulePreview(ask), asked };
  };
  const rest = () => vi.advanceTimersByTimeAsync(1000);

  it('asks about the last draft only, once the hand rests', async () => {
    const { preview, asked } = ground();
    const other = { ...draft, uses: 2 };
    const giveUp = preview.ask(draft);
    giveUp();
    preview.ask(other);
    await rest();
    expect(asked).toEqual([other]);
    expect(preview.of(other, undefined)).toMatchObject({ scope: scope(other), problem: null });
  });

  it('says nothing of a draft by the answer to another', async () => {
    const { preview } = ground();
    preview.ask(draft);
    await rest();
    expect(preview.of({ ...draft }, undefined)).toMatchObject({ scope: null, problem: null, failure: null });
  });

  it('drops an answer that was given up meanwhile', async () => {
    let answer: (value: Awaited<ReturnType<AskPreview>>) => void = () => undefined;
    const preview = new RulePreview(() => new Promise((resolve) => (answer = resolve)));
    const giveUp = preview.ask(draft);
    await rest();
    giveUp();
    answer({ ok: true, value: { scope: scope(draft), problem: null, matchesRequest: true } });
    await rest();
    expect(preview.of(draft, undefined).scope).toBeNull();
  });

  it('has a problem where the rule would not match the action on the card, and where the bridge minds', async () => {
    const { preview } = ground(false);
    preview.ask(draft);
    await rest();
    expect(preview.of(draft, undefined).problem).toBe(words.rule.notThis);
    const { preview: minded } = ground(true, 'Too wide.');
    minded.ask(draft);
    await rest();
    expect(minded.of(draft, undefined).problem).toBe('Too wide.');
  });

  it('takes what was said with the offer, for that very draft', () => {
    const { preview } = ground();
    expect(preview.of(draft, scope(draft)).scope).toEqual(scope(draft));
    expect(preview.of({ ...draft }, scope(draft)).scope).toBeNull();
  });

  it('names what is missing without asking', () => {
    const { preview } = ground();
    const empty = { ...draft, match: emptyMatch('command') };
    expect(preview.of(empty, undefined).problem).toBe(words.rule.lacks.program);
  });

  it('says that it could not be checked, and does not pass for checked', async () => {
    const preview = new RulePreview(async () => ({ ok: false, failure: { code: 'offline', message: 'Gone.' } }));
    preview.ask(draft);
    await rest();
    expect(preview.of(draft, undefined)).toMatchObject({ scope: null, failure: { message: 'Gone.' } });
  });
});
