import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { limits } from '#protocol/limits.ts';
import type { ApprovalFacts, CommandReading } from '#protocol/events.ts';
import type { RuleDraft, RuleScope } from '#protocol/policy.ts';
import { words } from '../../web/text/approval.en.ts';
import { Answering, type Asked } from '../../web/view/approval/answering.svelte.ts';
import { mayBeSaved, type RuleCheck } from '../../web/view/approval/preview.svelte.ts';
import { beginning, bareOperator, joinsOf, saysMore } from '../../web/view/approval/reading.ts';
import { isBlind, keyOf, labelOf } from '../../web/view/conversation/allow.ts';
import type { CardAnswer } from '../../web/view/conversation/card.ts';

const program = (name: string | null, ...args: (string | null)[]): CommandReading['programs'][number] => ({
  name,
  args,
  via: [],
});
const simple: CommandReading = {
  form: 'shell',
  programs: [program('npm', 'test')],
  operators: [],
  redirections: [],
  substitutions: [],
  assignments: [],
  hereDocuments: 0,
  hosts: [],
  uninspectable: [],
  simple: true,
};

describe('a parsed command on the card (R-02)', () => {
  it('is folded only when the command itself says all of it', () => {
    expect(saysMore(simple)).toBe(false);
    const more: Partial<CommandReading>[] = [
      { simple: false },
      { programs: [program('a'), program('b')] },
      { programs: [{ ...program('rm'), via: ['sudo'] }] },
      { programs: [program(null)] },
      { programs: [program('rm', null)] },
      { redirections: [{ operator: '>', target: 'out', place: 'inside' }] },
      { hereDocuments: 1 },
      { hosts: ['example.dev'] },
      { install: { manager: 'npm', packages: ['x'], global: false, scripts: true } },
      { uninspectable: ['It runs what it fetches.'] },
    ];
    for (const change of more) expect(saysMore({ ...simple, ...change }), JSON.stringify(change)).toBe(true);
  });

  it('shows an operator between two programs only where it surely joins them', () => {
    const three = [program('a'), program('b'), program('c')];
    expect(joinsOf({ ...simple, programs: three, operators: ['&&', '|'] })).toEqual(['&&', '|']);
    for (const change of [
      { operators: ['&&'] },
      { operators: ['&&', '|', '&'] },
      { operators: ['subshell', '|'] },
      { operators: [';', ';'], substitutions: ['b'] },
      { operators: [';', ';'], assignments: ['X'] },
    ])
      expect(joinsOf({ ...simple, programs: three, ...change }), JSON.stringify(change)).toBeNull();
  });

  it('reads the operator of a numbered redirection', () => {
    expect(['2>>', '>', '{fd}<', '&>'].map(bareOperator)).toEqual(['>>', '>', '<', '&>']);
  });

  it('cuts no character in two', () => {
    const word = `${'a'.repeat(239)}😀${'b'.repeat(10)}`;
    expect(beginning(word)).toBe('a'.repeat(239));
    expect(beginning('short')).toBe('short');
  });

  it('is blind where the effect, or the end of the command, cannot be inspected', () => {
    expect(isBlind({ uninspectable: false })).toBe(false);
    expect(isBlind({ uninspectable: false, reading: simple })).toBe(false);
    expect(isBlind({ uninspectable: true })).toBe(true);
    expect(isBlind({ uninspectable: false, reading: { ...simple, uninspectable: ['It runs what it fetches.'] } })).toBe(
      true,
    );
  });
});

/** Stands for an element where there is no page. */
class Element {
  readonly tagName: string;
  readonly isContentEditable: boolean;
  constructor(tagName: string, isContentEditable = false) {
    this.tagName = tagName;
    this.isContentEditable = isContentEditable;
  }
}
const key = (name: string, more: Partial<KeyboardEvent> = {}): KeyboardEvent =>
  ({ key: name, target: null, isComposing: false, keyCode: 0, ...more }) as KeyboardEvent;

describe('keys and names of the answers (R-13, case 42)', () => {
  beforeEach(() => void vi.stubGlobal('HTMLElement', Element));
  afterEach(() => void vi.unstubAllGlobals());

  it('leaves the keys of a field to the field, Escape aside', () => {
    for (const field of [
      new Element('INPUT'),
      new Element('TEXTAREA'),
      new Element('SELECT'),
      new Element('P', true),
    ]) {
      expect(keyOf(key('a', { target: field as unknown as HTMLElement })), field.tagName).toBeNull();
      expect(keyOf(key('Escape', { target: field as unknown as HTMLElement }))).toBe('escape');
    }
    expect(keyOf(key('d', { target: new Element('BUTTON') as unknown as HTMLElement }))).toBe('d');
  });
  it('takes plain keys only, none of an input method and none with a modifier', () => {
    expect(keyOf(key('A'))).toBe('a');
    expect(keyOf(key('a', { isComposing: true }))).toBeNull();
    expect(keyOf(key('a', { keyCode: 229 }))).toBeNull();
    for (const held of ['ctrlKey', 'metaKey', 'altKey', 'shiftKey'])
      expect(keyOf(key('a', { [held]: true })), held).toBeNull();
  });

  it('says on the button all that goes along with it', () => {
    const said = (value: 'allow' | 'deny', noted: boolean, mode: '' | 'always' | 'never') =>
      words.card[labelOf(value, noted, mode)];
    expect(said('allow', false, '')).toBe('Allow');
    expect(said('allow', true, '')).toBe('Allow with note');
    expect(said('allow', true, 'always')).toBe('Save rule, allow with note');
    expect(said('allow', false, 'never')).toBe('Allow');
    expect(said('deny', false, 'never')).toBe('Save rule and deny');
    expect(said('deny', false, 'always')).toBe('Deny');
  });
});

const draft: RuleDraft = {
  effect: 'allow',
  agentId: 'practice',
  workspaceId: null,
  match: { by: 'command', program: 'npm', args: ['test'] },
  expiresAt: null,
  uses: null,
  limit: null,
};
const scope: RuleScope = { draft, sentence: 'Allow “npm test”.', matches: ['npm test'], misses: ['npm publish'] };
const good: RuleCheck = { draft, scope, problem: null, failure: null };
const facts: ApprovalFacts = {
  headline: 'Run npm test',
  argv: ['npm', 'test'],
  paths: [],
  diffs: [],
  risks: [],
  uninspectable: false,
  payloadBytes: 12,
};

/** A card that can be answered, `change` aside, and what was sent by it. */
const card = (change: Partial<Omit<Asked, 'approval'>> & { facts?: Partial<ApprovalFacts> } = {}) => {
  const sent: CardAnswer[] = [];
  const asked: Asked = {
    approval: {
      approvalId: '00000000-0000-7000-8000-000000000001',
      digest: 'd'.repeat(64),
      kind: 'command',
      facts: { ...facts, ...change.facts },
      words: {},
      options: [
        { id: 'yes', name: 'Yes', kind: 'allow_once', meaning: 'allow' },
        { id: 'no', name: 'No', kind: 'reject_once', meaning: 'deny' },
        { id: 'maybe', name: 'Maybe', kind: 'maybe', meaning: 'other' },
      ],
      rule: { scopes: [scope] },
      enforcement: 'mediated',
      containment: 'none',
      expiresAt: 0,
      actionBytes: 12,
    },
    decide: async (answer) => {
      sent.push(answer);
      return { ok: true, value: { receiptId: 'r' } };
    },
    whole: true,
    read: true,
    blocked: null,
    ...change,
  };
  const answering = new Answering(() => asked);
  answering.still.moved();
  return { answering, sent };
};
const press = (more: { isTrusted?: boolean; repeat?: boolean } = {}) =>
  ({ isTrusted: true, repeat: false, ...more }) as unknown as Event & { repeat: boolean };

describe('answering a card (R-12, R-13, T37, T38)', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const settle = () => vi.advanceTimersByTime(limits.cardInertMs);

  it('allows by a press after the pause, and by none within it, saying why', () => {
    const { answering, sent } = card();
    answering.allow(press());
    expect(sent).toEqual([]);
    expect(answering.still.said).toBe(words.card.ignored.settle);
    settle();
    answering.allow(press());
    expect(sent).toEqual([{ value: 'allow', optionId: 'yes' }]);
  });

  it('ignores what a script presses, in silence, and a held key, aloud', () => {
    const { answering, sent } = card();
    settle();
    answering.allow(press({ isTrusted: false }));
    expect([sent, answering.still.said]).toEqual([[], '']);
    answering.allow(press({ repeat: true }));
    answering.deny(press({ repeat: true }));
    expect([sent, answering.still.said]).toEqual([[], words.card.ignored.held]);
  });

  it('never sends twice', () => {
    const { answering, sent } = card();
    settle();
    answering.allow(press());
    answering.allow(press());
    answering.deny(press());
    expect(sent).toHaveLength(1);
  });

  it('denies at once, however new or unread the card', () => {
    const { answering, sent } = card({ read: false });
    answering.deny(press());
    expect(sent).toEqual([{ value: 'deny', optionId: 'no' }]);
  });

  it.each([
    ['its end was not in view', { read: false }, 'read'],
    ['it is not whole on the page', { whole: false }, 'acknowledge'],
    ['it cannot be inspected', { facts: { uninspectable: true } }, 'acknowledge'],
    [
      'its command cannot be read to the end',
      { facts: { reading: { ...simple, uninspectable: ['It runs what it fetches.'] } } },
      'acknowledge',
    ],
  ] as const)('does not allow while %s, and says so', (_, change, why) => {
    const { answering, sent } = card(change as Parameters<typeof card>[0]);
    settle();
    answering.allow(press());
    expect([sent, answering.still.said]).toEqual([[], words.card.ignored[why]]);
    expect(answering.seen).toBe(false);
  });

  it('allows what cannot be inspected once that was acknowledged, and only by its own box', () => {
    const { answering, sent } = card({ facts: { uninspectable: true } });
    settle();
    answering.sizeAcknowledged = true;
    answering.allow(press());
    expect(sent).toEqual([]);
    answering.blindAcknowledged = true;
    answering.allow(press());
    expect(sent).toHaveLength(1);
  });

  it('sends the note with either answer, and none that is empty or folded away', () => {
    const { answering: denies, sent: denied } = card();
    denies.flip('note');
    denies.note = '  leave it be ';
    denies.deny(press());
    expect(denied).toEqual([{ value: 'deny', optionId: 'no', note: 'leave it be' }]);

    const { answering, sent } = card();
    answering.flip('note');
    answering.note = 'go on';
    answering.flip('note');
    settle();
    answering.allow(press());
    expect(sent).toEqual([{ value: 'allow', optionId: 'yes' }]);
  });

  it('saves the very rule that was shown, with the answer it is for and with no other', () => {
    const { answering, sent } = card();
    answering.flip('always');
    answering.check = good;
    settle();
    answering.deny(press());
    expect(sent).toEqual([{ value: 'deny', optionId: 'no' }]);

    const { answering: allows, sent: allowed } = card();
    allows.flip('always');
    allows.check = good;
    settle();
    allows.allow(press());
    expect(allowed).toEqual([{ value: 'allow', optionId: 'yes', remember: true, rule: draft }]);
  });

  it('does not answer while its rule is unchecked or may not be saved', () => {
    const { answering, sent } = card();
    answering.flip('never');
    answering.deny(press());
    expect([sent, answering.still.said, answering.mayDeny]).toEqual([[], words.card.ignored.checking, false]);
    answering.check = { ...good, problem: 'It would match everything.' };
    answering.deny(press());
    expect([sent, answering.still.said]).toEqual([[], 'It would match everything.']);
    answering.flip('never');
    answering.deny(press());
    expect(sent).toEqual([{ value: 'deny', optionId: 'no' }]);
  });

  it('takes a check only for the draft it was made of', () => {
    expect(mayBeSaved(good, draft)).toBe(true);
    expect(mayBeSaved(good, { ...draft })).toBe(false);
    expect(mayBeSaved({ ...good, scope: null }, draft)).toBe(false);
  });

  it('opens again, inert, with the reason, when the answer was not taken', async () => {
    const { answering } = card({
      decide: async () => ({ ok: false, failure: { code: 'digest_mismatch', message: 'It changed.' } }),
    });
    settle();
    answering.allow(press());
    await vi.advanceTimersByTimeAsync(0);
    expect([answering.failure, answering.busy, answering.inert]).toEqual(['It changed.', false, 'settle']);
  });

  it('lets nothing be decided while the card is blocked', () => {
    const { answering, sent } = card({ blocked: 'Offline.' });
    settle();
    answering.allow(press());
    answering.deny(press());
    expect([sent, answering.reason]).toEqual([[], 'Offline.']);
  });
});
