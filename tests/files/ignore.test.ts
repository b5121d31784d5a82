import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { includes, isIgnored, rulesOf } from '../../bridge/files/ignore.ts';
import { fill, makeFolder } from './parts.ts';

const says = (rules: string, path: string, folder = false): boolean =>
  isIgnored([{ depth: 0, rules: rulesOf(rules) }], path.split('/'), folder);

describe('F-06 ignore files', () => {
  const rules = [
    ['*.log', 'plain', '/top', 'a/b', '**/deep/x', 'c/**', 'd/**/e', 'folder/', '[ab]?.txt', '[!0-9]z'],
    ['*.log', '!keep.log', '# comment', '', '  lead', 'trail   ', '\\#hash', '\\!bang', 'st\\*r'],
    ['*', '!*/', '!*.ts', 'x/*/y', '*a*b*c', 'é?', '/g*/h'],
  ];
  const paths = [
    ...['a.log', 'keep.log', 'x/a.log', 'plain', 'x/plain', 'top', 'x/top', 'a/b', 'x/a/b', 'deep/x', 'q/deep/x'],
    ...['c/f', 'd/e', 'd/m/n/e', 'd/f', 'folder', 'aa.txt', 'c9.txt', '1z', 'yz', '  lead', 'trail', '#hash', '!bang'],
    ...['st*r', 'star', 'm.ts', 'x/m/y', 'x/y', '1a2b3c', 'abd', 'éa', 'g1/h', 'g1/i', 'comment'],
  ];
  test.each(rules.map((lines, at) => [at, lines] as const))('are read as git reads them (%i)', (_, lines) => {
    const folder = makeFolder();
    execFileSync('git', ['init', '-q'], { cwd: folder });
    writeFileSync(join(folder, '.gitignore'), `${lines.join('\n')}\n`);
    // Folders of these paths that are ignored themselves decide before; git then answers for what lies in them, too.
    const apart = paths.filter((path) =>
      path.split('/').every((_, at, all) => at === 0 || !says(lines.join('\n'), all.slice(0, at).join('/'), true)),
    );
    fill(
      folder,
      Object.fromEntries(
        apart.filter((path) => !apart.some((other) => other.startsWith(`${path}/`))).map((path) => [path, '']),
      ),
    );
    const asked = apart.filter((path) => !apart.some((other) => other.startsWith(`${path}/`)));
    let told = '';
    try {
      told = execFileSync('git', ['check-ignore', '-z', '--stdin'], {
        cwd: folder,
        input: asked.join('\0'),
        encoding: 'utf8',
      });
    } catch (error) {
      if ((error as { status?: number }).status !== 1) throw error;
    }
    const ignored = new Set(told.split('\0'));
    expect(asked.length).toBeGreaterThan(20);
    expect(asked.filter((path) => says(lines.join('\n'), path))).toEqual(asked.filter((path) => ignored.has(path)));
  });

  test('a file made to hurt costs little and hides nothing', () => {
    const hostile = rulesOf(`${'*a'.repeat(100)}b\n`.repeat(1000));
    const began = process.cpuUsage().user;
    for (let entry = 0; entry < 2000; entry += 1)
      expect(isIgnored([{ depth: 0, rules: hostile }], [`${'a'.repeat(250)}${entry}`], false)).toBe(false);
    expect((process.cpuUsage().user - began) / 1e6).toBeLessThan(8);
    expect(says(' '.repeat(60_000).concat('x'), 'x')).toBe(false);
  });

  test('patterns to look into take names, endings, folders and exceptions', () => {
    const asked = (patterns: string, path: string): boolean | undefined => includes(patterns)?.(path.split('/'));
    expect(includes('')).toBeNull();
    expect(includes(' , ')).toBeNull();
    expect([asked('*.ts', 'a/b.ts'), asked('*.ts', 'a/b.js')]).toEqual([true, false]);
    expect([asked('src', 'src/a/b.ts'), asked('src/', 'src/a'), asked('src/', 'lib/src')]).toEqual([true, true, false]);
    expect([asked('*.ts, !*.test.ts', 'a.ts'), asked('*.ts, !*.test.ts', 'a.test.ts')]).toEqual([true, false]);
    expect([asked('!dist', 'a'), asked('!dist', 'dist/a'), asked('web/**/*.css', 'web/a/b.css')]).toEqual([
      true,
      false,
      true,
    ]);
  });
});
