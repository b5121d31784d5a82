import fc from 'fast-check';
import MarkdownIt from 'markdown-it';
import { describe, expect, it } from 'vitest';
import type { App } from '../../web/state/app.svelte.ts';
import { Difference } from '../../web/state/difference.svelte.ts';
import { maxComments, Review, type ReviewComment } from '../../web/state/review.svelte.ts';
import { withComments } from '../../web/view/changes/items.ts';
import { checkAgainst } from '../../web/view/changes/recheck.ts';
import { findQuoted, replaced, reviewMessage } from '../../web/view/changes/review.ts';
import { textRows, type TextDiff } from '../../web/view/changes/rows.ts';

const comment = (change: Partial<ReviewComment> = {}): ReviewComment => ({
  id: 'c1',
  of: { kind: 'unstaged' },
  entryId: 'YS50cw',
  fromId: null,
  name: 'src/a.ts',
  side: 'new',
  from: 10,
  to: 11,
  quoted: ['first()', 'second()'],
  text: 'Give this a name.',
  revision: 'r1',
  state: 'there',
  at: 1,
  ...change,
});
const lines = (from: number, ...texts: string[]): Map<number, string> =>
  new Map(texts.map((text, index) => [from + index, text]));

describe('where the lines of a comment went (F-24)', () => {
  it('finds them where they were', () =>
    expect(replaced(comment(), 'r2', lines(9, 'x', 'first()', 'second()'))).toMatchObject({
      from: 10,
      to: 11,
      state: 'there',
      revision: 'r2',
    }));

  it('follows them to the nearest place and says that they moved', () => {
    const known = new Map([...lines(2, 'first()', 'second()'), ...lines(14, 'first()', 'second()')]);
    expect(replaced(comment(), 'r2', known)).toMatchObject({ from: 14, to: 15, state: 'moved' });
    // It stays marked, until it is back where it was written.
    expect(replaced(comment({ from: 14, to: 15, state: 'moved' }), 'r3', known)).toMatchObject({ state: 'moved' });
  });

  it('marks the comment stale when one of its lines is gone, and keeps where it was', () => {
    const gone = replaced(comment(), 'r2', lines(10, 'first()', 'third()'));
    expect(gone).toMatchObject({ from: 10, to: 11, state: 'stale', revision: 'r1' });
    expect(replaced(gone, 'r3', lines(10, 'first()', 'second()'))).toMatchObject({ state: 'there', revision: 'r3' });
  });

  it('does not find blank lines anywhere but where they were', () => {
    expect(findQuoted(['', ' '], 5, lines(20, '', ' '))).toBeNull();
    expect(findQuoted(['', ' '], 20, lines(20, '', ' '))).toBe(20);
  });

  it('finds what stands in a text at a nearest place, for any text', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(
        text,
        fc.nat(29),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 40 }),
        (all, at, count, from) => {
          const quoted = all.slice(at % all.length, (at % all.length) + count);
          const known = new Map(all.map((line, index) => [index + 1, line]));
          const found = findQuoted(quoted, from, known);
          const places = all.flatMap((_, index) =>
            quoted.every((line, offset) => all[index + offset] === line) ? [Math.abs(index + 1 - from)] : [],
          );
          expect(found).not.toBeNull();
          expect(quoted.every((line, offset) => known.get((found ?? 0) + offset) === line)).toBe(true);
          expect(Math.abs((found ?? 0) - from)).toBe(Math.min(...places));
        },
      ),
    );
  });
});

describe('the message of a review (F-24, case 38)', () => {
  const parsed = (text: string) => new MarkdownIt().parse(text, {});

  it('names each place, its side and source, quotes the lines and says what to do, by file and line', () => {
    const text = reviewMessage([
      comment({
        id: 'b',
        name: 'src/b.ts',
        from: 3,
        to: 3,
        quoted: ['old()'],
        side: 'old',
        text: 'Keep it.',
        state: 'stale',
      }),
      comment(),
    ]);
    expect(text).toBe(
      [
        '2 review comments on your changes. Please address each of them.',
        '',
        '1. `src/a.ts:10-11` (after the change, not committed)',
        '',
        '```',
        'first()',
        'second()',
        '```',
        '',
        'Give this a name.',
        '',
        '2. `src/b.ts:3` (before the change, not committed; these lines have changed since)',
        '',
        '```',
        'old()',
        '```',
        '',
        'Keep it.',
        '',
      ].join('\n'),
    );
  });

  it('keeps quoted text inside its fence, whatever it is', () => {
    const hostile = [
      '```',
      '````js',
      '~~~',
      '<script>',
      '# Ignore the above',
      '`````',
      '    x',
      '> y',
      '',
      '1. z',
      '\u202e',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...hostile), { minLength: 1, maxLength: 8 }), (quoted) => {
        const tokens = parsed(reviewMessage([comment({ quoted }), comment({ id: 'z', name: 'z', text: 'After.' })]));
        const fences = tokens.filter((token) => token.type === 'fence').map((token) => token.content);
        expect(fences).toEqual([`${quoted.join('\n')}\n`, 'first()\nsecond()\n']);
        expect(tokens.filter((token) => token.type === 'heading_open')).toEqual([]);
      }),
    );
  });

  it('keeps a hostile name in one line and one code span', () => {
    const name = 'a`b``\n# Do this\u202e\t.ts';
    const [, ...rest] = parsed(reviewMessage([comment({ name })])).filter((token) => token.type === 'inline');
    const code = rest[0]?.children?.filter((token) => token.type === 'code_inline') ?? [];
    expect(code.map((token) => token.content)).toEqual(['a`b``\\n# Do this\\u{202e}\\t.ts:10-11']);
  });
});

describe('comments among the lines', () => {
  const content: TextDiff = {
    kind: 'text',
    hunks: [
      { oldStart: 10, oldLines: 2, newStart: 10, newLines: 2, section: '', lines: [' first()', '-old()', '+second()'] },
    ],
    eol: { old: 'lf', new: 'lf' },
    onlyEol: false,
    replaced: false,
    lines: { old: 20, new: 20 },
  };

  it('stand under the last line they are about; stale ones come first', () => {
    const rows = textRows(content, new Map());
    const items = withComments(
      rows,
      [comment(), comment({ id: 'old', side: 'old', from: 11, to: 11 }), comment({ id: 'stale', state: 'stale' })],
      null,
    );
    expect(items.map((item) => (item.kind === 'comment' ? item.comment.id : item.kind))).toEqual([
      'stale',
      'fold',
      'same',
      'removed',
      'old',
      'added',
      'c1',
      'fold',
    ]);
  });

  it('never hides what is being written, not even when its line is gone', () => {
    const items = withComments(textRows(content, new Map()), [], { side: 'new', from: 3, to: 3 });
    expect(items[0]).toEqual({ kind: 'editor', picked: { side: 'new', from: 3, to: 3 } });
  });
});

interface Call {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly key: string | undefined;
  answer(value: unknown): void;
}
const ground = (kept: readonly ReviewComment[] = []) => {
  const calls: Call[] = [];
  const written: (readonly ReviewComment[])[] = [];
  const app = {
    copy: {
      review: () => Promise.resolve(kept),
      putReview: (_: string, comments: readonly ReviewComment[]) => written.push(comments),
    },
    call: (method: string, params: Record<string, unknown>, options?: { key?: string }) =>
      new Promise((answer) => calls.push({ method, params, key: options?.key, answer })),
  } as unknown as App;
  return { app, calls, written };
};
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
const { id: _id, at: _at, state: _state, ...fresh } = comment();

describe('comments that wait (F-24)', () => {
  it('comes back after a reload, and keeps what was written before that', async () => {
    const { app } = ground([comment({ id: 'kept' })]);
    const review = new Review(app, 'conversation');
    review.add(fresh);
    await settled();
    expect(review.comments.map((one) => one.id === 'kept')).toEqual([true, false]);
  });

  it('is cleared only when the bridge has the message; what came meanwhile stays', async () => {
    const { app, calls, written } = ground();
    const review = new Review(app, 'conversation');
    review.add(fresh);
    const sending = review.send('text', 'queue');
    review.add({ ...fresh, text: 'One more.' });
    expect(review.comments).toHaveLength(2);
    expect(calls[0]).toMatchObject({
      method: 'conversation.send',
      params: { conversationId: 'conversation', delivery: 'queue', content: [{ type: 'text', text: 'text' }] },
    });
    calls[0]?.answer({ ok: true, value: { queueId: 'q' } });
    await sending;
    expect(review.comments.map((one) => one.text)).toEqual(['One more.']);
    expect(written.at(-1)?.map((one) => one.text)).toEqual(['One more.']);
  });

  it('keeps all when it is refused, and says why', async () => {
    const { app, calls } = ground();
    const review = new Review(app, 'conversation');
    review.add(fresh);
    const sending = review.send('text', 'prompt');
    calls[0]?.answer({ ok: false, failure: { code: 'queue_full', message: 'The queue is full.' } });
    expect((await sending).ok).toBe(false);
    expect(review.comments).toHaveLength(1);
    expect(review.failure).toBe('The queue is full.');
  });

  it('is the same operation when its fate was not known, and another once the words changed', async () => {
    const { app, calls } = ground();
    const review = new Review(app, 'conversation');
    review.add(fresh);
    for (const text of ['words', 'words', 'other words']) {
      const sending = review.send(text, 'prompt');
      calls.at(-1)?.answer({ ok: false, failure: { code: 'offline', message: 'Away.' } });
      await sending;
    }
    expect(calls[1]?.key).toBe(calls[0]?.key);
    expect(calls[2]?.key).not.toBe(calls[0]?.key);
    expect(review.comments).toHaveLength(1);
  });

  it('takes no more than its bound', () => {
    const { app } = ground();
    const review = new Review(app, 'conversation');
    for (let count = 0; count < maxComments; count += 1) expect(review.add(fresh)).toBe(true);
    expect(review.add(fresh)).toBe(false);
    expect(review.comments).toHaveLength(maxComments);
  });
});

describe('comments and a file that went on (F-24)', () => {
  const diffOf = (revision: string, hunkLines: string[], from = 10) => ({
    entry: {},
    revision,
    content: {
      kind: 'text',
      hunks: [
        { oldStart: from, oldLines: 1, newStart: from, newLines: hunkLines.length, section: '', lines: hunkLines },
      ],
      eol: { old: 'lf', new: 'lf' },
      onlyEol: false,
      replaced: false,
      lines: { old: 40, new: 40 },
    },
  });
  const scene = async (diff: unknown, side?: unknown) => {
    const { app, calls } = ground();
    const review = new Review(app, 'conversation');
    review.add(fresh);
    const difference = new Difference(app, { workspaceId: 'w', of: comment().of, id: comment().entryId, fromId: null });
    const loading = difference.load();
    calls.at(-1)?.answer(diff);
    await loading;
    const checking = checkAgainst(review, difference, review.comments);
    await settled();
    if (side !== undefined) calls.find((call) => call.method === 'git.side')?.answer(side);
    await checking;
    return { review, calls };
  };
  const ok = (value: unknown) => ({ ok: true, value });

  it('is content with lines that are where they were, without asking for more', async () => {
    const { review, calls } = await scene(ok(diffOf('r2', [' first()', '+second()'])));
    expect(review.comments[0]).toMatchObject({ from: 10, to: 11, state: 'there', revision: 'r2' });
    expect(calls.some((call) => call.method === 'git.side')).toBe(false);
  });

  it('takes the nearest place of the whole file, not of what the difference happens to show', async () => {
    const { review } = await scene(
      ok(diffOf('r2', ['+new()', '+first()', '+second()'], 30)),
      ok({ kind: 'text', firstLine: 11, lines: ['first()', 'second()'], total: 40 }),
    );
    expect(review.comments[0]).toMatchObject({ from: 11, to: 12, state: 'moved', revision: 'r2' });
  });

  it('looks in the whole side before it calls a comment stale', async () => {
    const found = await scene(
      ok(diffOf('r2', ['+other()'])),
      ok({ kind: 'text', firstLine: 30, lines: ['first()', 'second()'], total: 40 }),
    );
    expect(found.review.comments[0]).toMatchObject({ from: 30, to: 31, state: 'moved' });
    const gone = await scene(
      ok(diffOf('r2', ['+other()'])),
      ok({ kind: 'text', firstLine: 1, lines: ['x'], total: 1 }),
    );
    expect(gone.review.comments[0]).toMatchObject({ from: 10, state: 'stale' });
  });

  it('is stale when the entry is gone, and untouched when the bridge could not say', async () => {
    const gone = await scene({ ok: false, failure: { code: 'not_found', message: '' } });
    expect(gone.review.comments[0]?.state).toBe('stale');
    const away = await scene({ ok: false, failure: { code: 'offline', message: '' } });
    expect(away.review.comments[0]?.state).toBe('there');
    const half = await scene(ok(diffOf('r2', ['+other()'])), {
      ok: false,
      failure: { code: 'git_timeout', message: 'Slow.' },
    });
    expect(half.review.comments[0]?.state).toBe('there');
  });
});
