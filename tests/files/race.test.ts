import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Refusal } from '#protocol/errors.ts';
import { atEnd, fill, makeRoot } from './parts.ts';

/** A workspace whose `d` (or `d/f`) is at times the real thing and at times a link to the outside twin. */
const makeRace = async (what: 'folder' | 'leaf') => {
  const made = makeRoot({ 'd/f': 'inside' });
  const { path, outside } = made;
  fill(outside, { f: 'outside' });
  const name = join(path, what === 'folder' ? 'd' : 'd/f');
  symlinkSync(what === 'folder' ? outside : join(outside, 'f'), `${name}.link`);
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'swapper.ts'), name, `${name}.real`, `${name}.link`, '10000'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  atEnd(() => {
    expect(child.exitCode, 'the swapper must have swapped to the end').toBeNull();
    child.kill('SIGKILL');
  });
  await once(child.stdout, 'data');
  return made;
};

/** Runs `read` until it was let outside or `tries` are over. Returns how often it got the inside and the outside. */
const run = (tries: number, read: () => string, untilEscape: boolean): { inside: number; escapes: number } => {
  const seen = { inside: 0, escapes: 0 };
  for (let done = 0; done < tries; done += 1) {
    const text = attempt(read);
    if (text === 'inside') seen.inside += 1;
    if (text === 'outside') seen.escapes += 1;
    if (untilEscape && seen.escapes > 0 && seen.inside > 0) break;
  }
  return seen;
};

const attempt = (read: () => string): string | null => {
  try {
    return read();
  } catch (error) {
    if (error instanceof Refusal || (error instanceof Error && 'code' in error)) return null;
    throw error;
  }
};

describe('T53 swap race', () => {
  test.each(['folder', 'leaf'] as const)(
    'the weak twin, which checks the real path and then opens, is led outside by a swapped %s',
    async (what) => {
      const { path } = await makeRace(what);
      const naive = (): string => {
        const file = join(path, 'd/f');
        if (!realpathSync(file).startsWith(`${path}/`)) throw new Refusal('symlink_refused');
        return readFileSync(file, 'utf8');
      };
      const { inside, escapes } = run(400_000, naive, true);
      expect(inside).toBeGreaterThan(0);
      expect(escapes).toBeGreaterThan(0);
    },
  );

  test.each(['folder', 'leaf'] as const)('6,000 guarded reads are never led outside by a swapped %s', async (what) => {
    const { root } = await makeRace(what);
    const { inside, escapes } = run(6_000, () => root.readText('d/f', 100)?.text ?? '', false);
    expect(escapes).toBe(0);
    expect(inside).toBeGreaterThan(0);
  });

  test('listing and describing never show the outside', async () => {
    const { root, outside } = await makeRace('folder');
    writeFileSync(join(outside, 'secret-of-outside'), '');
    let listed = 0;
    for (let done = 0; done < 1000; done += 1) {
      const names = attempt(() =>
        root
          .list('d')
          .entries.map(({ name }) => name)
          .join(),
      );
      const size = attempt(() => String(root.stat('d/f').bytes));
      if (names !== null) listed += 1;
      expect([null, 'f']).toContain(names);
      expect([null, '6']).toContain(size);
    }
    expect(listed).toBeGreaterThan(0);
  });

  test('writing never lands outside', async () => {
    const { root, outside } = await makeRace('folder');
    let written = 0;
    for (let done = 0; done < 400; done += 1) {
      if (attempt(() => root.write('d/f', Buffer.from('inside'), root.stat('d/f').revision).sha256) !== null)
        written += 1;
    }
    expect(readdirSync(outside)).toEqual(['f']);
    expect(readFileSync(join(outside, 'f'), 'utf8')).toBe('outside');
    expect(written).toBeGreaterThan(0);
  });
});
