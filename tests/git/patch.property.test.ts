import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DiffHunk } from '#protocol/methods/git.ts';
import { endsOf, parsePatch, wholePatch } from '../../bridge/git/patch.ts';
import { changesBetween, diffBetween } from '../../bridge/git/trees.ts';
import { idOf, makeRepository, openRoom, plainEnv, signal } from './parts.ts';

/** Lines with their ends, so that the last may have none. */
const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** As a person would by hand: each hunk where it says, its old lines checked against what is there. */
const apply = (old: string, hunks: readonly DiffHunk[]): string => {
  const source = linesOf(old);
  const result: string[] = [];
  let at = 0;
  for (const hunk of hunks) {
    const start = hunk.oldLines === 0 ? hunk.oldStart : hunk.oldStart - 1;
    result.push(...source.slice(at, start));
    at = start;
    expect(result.length).toBe(hunk.newLines === 0 ? hunk.newStart : hunk.newStart - 1);
    hunk.lines.forEach((line, index) => {
      if (line.startsWith('\\')) return;
      const open = hunk.lines[index + 1]?.startsWith('\\') === true;
      const text = line.slice(1) + (open ? '' : '\n');
      if (!line.startsWith('+')) {
        expect(source[at]).toBe(text);
        at += 1;
      }
      if (!line.startsWith('-')) result.push(text);
    });
  }
  return [...result, ...source.slice(at)].join('');
};

const line = fc.constantFrom(
  'a',
  'b',
  '',
  ' x',
  '-y',
  '+z',
  '@@ -1 +1 @@',
  '\\ No newline',
  'é…',
  'c\r',
  'diff --git a/a b/a',
);
const text = fc
  .tuple(fc.array(line, { maxLength: 30 }), fc.boolean())
  .map(([lines, ended]) => (lines.length === 0 ? '' : lines.join('\n') + (ended ? '\n' : '')));

describe('F-22 hunks', () => {
  test('applied to the old text they give the new one, for any two texts', async () => {
    const repository = makeRepository();
    const room = openRoom(repository.path);
    const write = (content: string): string =>
      execFileSync('git', ['hash-object', '-w', '--stdin'], {
        cwd: repository.path,
        env: plainEnv(repository.base),
        input: content,
      })
        .toString()
        .trim();
    // Many texts in two trees: one run of git for each of them would be slow.
    const pairs = fc.sample(fc.tuple(text, text, fc.integer({ min: 0, max: 4 })), { numRuns: 60, seed: 20 });
    const tree = (side: 0 | 1): string => {
      const entries = pairs.map((pair, at) => `100644 blob ${write(pair[side])}\t${at}\n`).join('');
      return execFileSync('git', ['mktree'], { cwd: repository.path, env: plainEnv(repository.base), input: entries })
        .toString()
        .trim();
    };
    const pair = { gitDirectory: `${repository.path}/.git`, from: tree(0), to: tree(1) };
    const changed = new Set((await changesBetween(room.run, pair, signal)).map(({ id }) => id));
    let [seen, at] = [0, 0];
    for (const [old, fresh, context] of pairs) {
      const id = idOf(String(at));
      at += 1;
      expect(changed.has(id)).toBe(old !== fresh);
      if (old === fresh) continue;
      const { content } = await diffBetween(room.run, pair, { id, context }, signal);
      if (content.kind !== 'text') throw new Error(`${content.kind} for a text`);
      expect(apply(old, content.hunks)).toBe(fresh);
      expect(content.lines).toEqual({ old: linesOf(old).length, new: linesOf(fresh).length });
      seen += 1;
    }
    expect(seen).toBeGreaterThan(40);
  });

  test('a whole file as a patch is the file, from nothing and to nothing', () => {
    fc.assert(
      fc.property(text, (content) => {
        const added = parsePatch(wholePatch(Buffer.from(content), '+'));
        expect(apply('', added.hunks)).toBe(content);
        expect(apply(content, parsePatch(wholePatch(Buffer.from(content), '-')).hunks)).toBe('');
        expect(added.new).toMatchObject(endsOf(Buffer.from(content)));
      }),
    );
  });

  test('whatever stands in place of a patch is read without an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.array(line, { maxLength: 20 }), (bytes, lines) => {
        const patch = parsePatch(
          Buffer.concat([Buffer.from('@@ -1,9 +1,9 @@\n'), Buffer.from(lines.join('\n')), bytes]),
        );
        expect(patch.total).toBe(patch.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0));
      }),
    );
  });
});
