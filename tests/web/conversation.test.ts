import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limits } from '../../protocol/limits.ts';
import type { ApprovalOption } from '../../protocol/events.ts';
import type { BlockView, Entry } from '../../protocol/view.ts';
import { answersOf, isOwnPress, whyInert, type AllowFacts } from '../../web/view/conversation/allow.ts';
import {
  byteLength,
  isInputMethod,
  mentionOf,
  mentions,
  promptParts,
  sends,
  tokenAt,
  type Key,
} from '../../web/view/conversation/compose.ts';
import { changedAbove } from '../../web/view/conversation/follow.svelte.ts';
import { countdown, headAndTail, within } from '../../web/view/conversation/format.ts';
import { rowOfSeq, transcriptRows, type Row } from '../../web/view/conversation/rows.ts';

const ready: AllowFacts = {
  nowMs: 10_000,
  movedMs: 0,
  read: true,
  whole: true,
  sizeAcknowledged: false,
  blind: false,
  blindAcknowledged: false,
  offered: true,
};

describe('when Allow can be pressed (R-13, T37, T38)', () => {
  it('is open when all is seen, still and offered', () => expect(whyInert(ready)).toBeNull());

  it.each([
    ['just appeared or moved', { movedMs: 10_000 - limits.cardInertMs + 1 }, 'settle'],
    ['its end was not in view', { read: false }, 'read'],
    ['not all of it is on the page', { whole: false }, 'acknowledge'],
    ['its effect is unknown', { blind: true }, 'acknowledge'],
    ['the agent offers no way to allow', { offered: false }, 'noOption'],
  ] as const)('is shut while %s', (_, change, why) => expect(whyInert({ ...ready, ...change })).toBe(why));

  it('opens exactly after the pause', () =>
    expect(whyInert({ ...ready, movedMs: 10_000 - limits.cardInertMs })).toBeNull());

  it('takes an acknowledged size in place of reading to the end, but not in place of knowing the effect', () => {
    expect(whyInert({ ...ready, whole: false, read: false, sizeAcknowledged: true })).toBeNull();
    expect(whyInert({ ...ready, blind: true, sizeAcknowledged: true })).toBe('acknowledge');
    expect(whyInert({ ...ready, blind: true, blindAcknowledged: true })).toBeNull();
  });

  it('takes only a press a person made, once', () => {
    expect(isOwnPress({ isTrusted: true })).toBe(true);
    expect(isOwnPress({ isTrusted: false })).toBe(false);
    expect(isOwnPress({ isTrusted: true, repeat: true })).toBe(false);
  });
});

describe('answers of a card (R-03, U-05)', () => {
  const option = (id: string, kind: string, meaning: ApprovalOption['meaning']): ApprovalOption => ({
    id,
    name: id,
    kind,
    meaning,
  });

  it('prefers the answers for once, keeps the rest in order under More', () => {
    const options = [
      option('never', 'reject_always', 'deny'),
      option('yes', 'allow_once', 'allow'),
      option('odd', 'allow_session', 'other'),
      option('no', 'reject_once', 'deny'),
    ];
    const answers = answersOf(options);
    expect([answers.allow?.id, answers.deny?.id]).toEqual(['yes', 'no']);
    expect(answers.others.map((one) => one.id)).toEqual(['never', 'odd']);
  });

  it('never makes an answer of an option whose meaning is not known', () => {
    expect(answersOf([option('a', 'yes_please', 'other')])).toMatchObject({ allow: null, deny: null });
  });
});

describe('keys of the composer (U-04, case 42)', () => {
  const key = (change: Partial<Key>): Key => ({
    key: 'Enter',
    keyCode: 13,
    isComposing: false,
    shiftKey: false,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    ...change,
  });

  it('sends with Enter, and breaks the line with Shift', () => {
    expect(sends(key({}), false)).toBe(true);
    expect(sends(key({ shiftKey: true }), false)).toBe(false);
    expect(sends(key({ key: 'a', keyCode: 65 }), false)).toBe(false);
  });

  it('does not send while an input method composes, nor when only the key code tells', () => {
    for (const change of [{ isComposing: true }, { keyCode: 229 }]) {
      expect(sends(key(change), false)).toBe(false);
      expect(sends(key({ ...change, ctrlKey: true }), true)).toBe(false);
      expect(isInputMethod(key(change))).toBe(true);
    }
  });

  it('sends with Ctrl or ⌘ where that is the setting, and then not with Enter alone', () => {
    expect(sends(key({}), true)).toBe(false);
    expect(sends(key({ ctrlKey: true }), true)).toBe(true);
    expect(sends(key({ metaKey: true }), true)).toBe(true);
    expect(sends(key({ ctrlKey: true }), false)).toBe(false);
  });
});

describe('mentions and parts of a prompt (U-04)', () => {
  it('knows what is being typed at the caret', () => {
    expect(tokenAt('/re', 3)).toEqual({ kind: 'command', query: 're', from: 0, to: 3 });
    expect(tokenAt('see @src/da', 11)).toEqual({ kind: 'file', query: 'src/da', from: 4, to: 11 });
    expect(tokenAt('@', 1)).toEqual({ kind: 'file', query: '', from: 0, to: 1 });
    for (const [text, caret] of [
      ['a /re', 5],
      ['me@x.test', 9],
      ['@done then', 10],
      ['/usr/bin', 8],
      ['plain', 5],
    ] as const)
      expect(tokenAt(text, caret)).toBeNull();
  });

  it('finds mentioned paths once each, without the punctuation around them', () => {
    expect(mentions('look at @src/date.ts, (@a.md) and @"my notes.txt"; again @src/date.ts. me@x.test')).toEqual([
      'src/date.ts',
      'a.md',
      'my notes.txt',
    ]);
    expect(mentions(mentionOf('my notes.txt'))).toEqual(['my notes.txt']);
  });

  it('sends text, attachments and files, in bounds, and no empty text', () => {
    const blob = { sha256: 'a'.repeat(64), bytes: 1, mime: 'text/plain' };
    expect(promptParts('hi', [blob], ['a.ts'])).toEqual([
      { type: 'text', text: 'hi' },
      { type: 'blob', blob },
      { type: 'file', path: 'a.ts' },
    ]);
    expect(promptParts('  ', [blob], [])).toEqual([{ type: 'blob', blob }]);
    expect(promptParts('x', Array(limits.promptBlobs + 5).fill(blob), [])).toHaveLength(limits.promptBlobs + 1);
  });

  it('measures text as the bridge does', () => expect(byteLength('é😀')).toBe(6));
});

describe('rows of a transcript (U-03)', () => {
  const message = (seq: number): Entry => ({
    kind: 'message',
    key: `m${seq}`,
    seq,
    at: seq,
    role: 'agent',
    messageId: `m${seq}`,
    text: 'x',
    attachments: [],
    interrupted: false,
    streaming: false,
  });
  const tool = (seq: number): Entry => ({
    kind: 'tool',
    key: `t${seq}`,
    seq,
    at: seq,
    toolCallId: `t${seq}`,
    title: 't',
    toolKind: 'read',
    status: 'completed',
    locations: [],
    content: [],
    approvalIds: [],
  });
  const view = (firstSeq: number, entries: readonly Entry[], change: Partial<BlockView> = {}): BlockView => ({
    firstSeq,
    lastSeq: firstSeq + 9,
    complete: true,
    turnId: 't',
    startedAt: 0,
    ended: null,
    usage: null,
    receipts: [],
    entries,
    ...change,
  });
  const rowsOf = (...views: (BlockView | number)[]): readonly Row[] =>
    transcriptRows({
      live: null,
      sending: [],
      progress: false,
      blocks: views.map((one) =>
        typeof one === 'number'
          ? { firstSeq: one, endSeq: one + 10, view: null }
          : { firstSeq: one.firstSeq, endSeq: one.lastSeq + 1, view: one },
      ),
    });

  it('puts neighbouring tool calls into one row', () => {
    expect(rowsOf(view(1, [message(1), tool(2), tool(3), message(4), tool(5)])).map((row) => row.kind)).toEqual([
      'entry',
      'tools',
      'entry',
      'tools',
    ]);
  });

  it('puts a card under the call it is about, by id or by the name the bridge gave both', () => {
    const card = (seq: number, headline: string): Entry => {
      const facts = { headline, paths: [], diffs: [], risks: [], uninspectable: false, payloadBytes: 0 };
      const request = {
        approvalId: `a${seq}`,
        kind: 'command' as const,
        digest: 'd',
        actionBytes: 0,
        facts,
        words: {},
        options: [],
        rule: null,
        enforcement: 'mediated' as const,
        containment: 'bubblewrap' as const,
        expiresAt: 0,
      };
      return {
        kind: 'approval',
        key: `a${seq}`,
        seq,
        at: seq,
        approvalId: `a${seq}`,
        request,
        status: { state: 'pending' },
        outcome: null,
        receipts: [],
      };
    };
    const under = (...entries: Entry[]) =>
      rowsOf(view(1, entries)).flatMap((row) => (row.kind === 'entry' ? [row.under] : []));
    expect(under({ ...tool(1), approvalIds: ['a2'] } as Entry, card(2, 'Run x'))).toEqual([true]);
    expect(under({ ...tool(1), title: 'Run x' } as Entry, card(2, 'Run x'))).toEqual([true]);
    expect(under(tool(1), card(2, 'Run x'))).toEqual([false]);
    expect(under({ ...tool(1), title: 'Run x' } as Entry, message(2), card(3, 'Run x'))).toEqual([false, false]);
  });

  it('has a place for what is not loaded, whole or in part', () => {
    const rows = rowsOf(1, view(11, [message(15)], { complete: false }));
    expect(rows.map((row) => row.kind)).toEqual(['gap', 'gap', 'entry']);
    expect(rows[1]).toMatchObject({ seq: 14 });
  });

  it('gives every row its own key, also where blocks repeat an id', () => {
    const rows = rowsOf(view(1, [message(1), tool(2)]), view(11, [message(1), tool(2)]));
    expect(new Set(rows.map((row) => row.key)).size).toBe(rows.length);
  });

  it('makes the rows of an unchanged block once', () => {
    const block = view(1, [message(1), tool(2)]);
    expect(rowsOf(block)[1]).toBe(rowsOf(block, view(11, [message(11)]))[1]);
  });

  it('finds the row of an event, or says it is not loaded', () => {
    const rows = rowsOf(1, view(11, [message(11), tool(13), tool(14), message(17)]));
    expect(rowOfSeq(rows, 14)).toBe(2);
    expect(rowOfSeq(rows, 18)).toBe(3);
    expect(rowOfSeq(rows, 5)).toBe(-1);
  });

  it('tells a change above the reader from one below', () => {
    const before = rowsOf(1, view(11, [message(11), message(12)]));
    const loaded = rowsOf(view(1, [message(1), message(2), message(3)]), view(11, [message(11), message(12)]));
    const grown = rowsOf(1, view(11, [message(11), message(12), message(13)]));
    expect(changedAbove(before, loaded, [1, 2])).toBe(true);
    expect(changedAbove(before, loaded, [0, 2])).toBe(true);
    expect(changedAbove(before, grown, [1, 2])).toBe(false);
    expect(changedAbove(before, loaded, [0, 0])).toBe(false);
    expect(changedAbove([], loaded, [0, 0])).toBe(false);
  });
});

describe('shapes of text', () => {
  it('keeps head and tail and counts the rest, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 400, unit: 'grapheme' }), fc.integer({ min: 8, max: 200 }), (text, max) => {
        const ends = headAndTail(text, max);
        expect(ends === null).toBe(text.length <= max);
        if (ends === null) return;
        expect(text.startsWith(ends.head) && text.endsWith(ends.tail)).toBe(true);
        expect(ends.head.length + ends.tail.length + ends.hiddenUnits).toBe(text.length);
        expect(ends.head + ends.tail).toSatisfy((joined: string) => joined.isWellFormed() || !text.isWellFormed());
      }),
    );
  });

  it('counts down and never below zero', () => {
    expect([countdown(29 * 60_000 + 4000), countdown(999), countdown(-5)]).toEqual(['29:04', '0:01', '0:00']);
  });

  it('names a path within its workspace only when it lies in it', () => {
    expect(within('/a/b', '/a/b/c.ts')).toBe('c.ts');
    expect(within('/a/b', '/a/bc/d.ts')).toBe('/a/bc/d.ts');
    expect(within('', '/x')).toBe('/x');
  });
});
