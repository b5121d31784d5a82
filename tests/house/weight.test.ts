import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const build = fileURLToPath(new URL('../../build', import.meta.url));
const wireBytes = (path: string): number => {
  const packed = join(build, `${path}.br`);
  return statSync(existsSync(packed) ? packed : join(build, path)).size;
};
const named = (folder: string, name: RegExp): string[] =>
  readdirSync(join(build, '_app/immutable', folder))
    .filter((file) => name.test(file))
    .map((file) => `/_app/immutable/${folder}/${file}`);

/** What the shell names, what the first page adds (Kit numbers it 2), and all these import before they run. */
const firstPage = (): Set<string> => {
  const shell = readFileSync(join(build, 'index.html'), 'utf8');
  const found = new Set<string>();
  const visit = (path: string): void => {
    if (found.has(path)) return;
    found.add(path);
    if (!path.endsWith('.js')) return;
    for (const [, target = ''] of readFileSync(join(build, path), 'utf8').matchAll(
      /(?:from|import)\s*"(\.[^"]+\.js)"/g,
    ))
      visit(new URL(target, `http://x${path}`).pathname);
  };
  for (const [, path = ''] of shell.matchAll(/(?:href|src)="(\/[^"]+\.(?:js|css))"/g)) visit(path);
  for (const path of [...named('nodes', /^2\..*\.js$/), ...named('assets', /^2\..*\.css$/)]) visit(path);
  return found;
};

test('the first page loads at most 120 KiB of code and style, and none of what is for later', () => {
  const files = [...firstPage()];
  expect(files.length).toBeGreaterThan(10);
  expect(files.reduce((sum, path) => sum + wireBytes(path), 0)).toBeLessThanOrEqual(120 * 1024);
  const text = files.filter((path) => path.endsWith('.js')).map((path) => readFileSync(join(build, path), 'utf8'));
  // markdown-it and shiki by words of their own.
  for (const later of ['maxNesting', 'injectionSelector', 'scopeName'])
    expect(text.some((one) => one.includes(later))).toBe(false);
});
