import { spawnSync, type SpawnSyncOptions } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CommandReading } from '#protocol/events.ts';
import { corpus, read } from './readings.ts';

/** Bash finds no program at all, and writes down what it looked for, after every expansion; a loop without end is ended. */
const handler = `() {
  printf -v line '%s\\x1f' "$@"
  printf '%s\\x1e' "$line" >> "$LOOKED_FOR"
  mapfile -d $'\\x1e' -t seen < "$LOOKED_FOR"
  [ "\${#seen[@]}" -gt 100 ] && kill -KILL $$
  return "$ANSWER"
}`;

/** Nothing of these can reach out of an empty directory: only builtins run, and none with a path of its own. */
const isSafe = (text: string): boolean =>
  !/(^|[\s;&|(<>="'`{])(\/(?!dev\/null)|~|\.\.)|\$HOME|\/\?|\b(kill|exec|enable|suspend|ulimit)\b|\0/.test(text);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-oracle-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

const lookedFor = (text: string, answer: 0 | 1): string[][] => {
  const own = mkdtempSync(join(folder, 'run-'));
  const [log, cwd, empty] = [join(own, 'log'), join(own, 'cwd'), join(own, 'empty')];
  mkdirSync(cwd);
  mkdirSync(empty);
  const options: SpawnSyncOptions & { detached: boolean } = {
    cwd,
    stdio: 'ignore',
    detached: true,
    timeout: 20_000,
    killSignal: 'SIGKILL',
    env: {
      PATH: empty,
      LC_ALL: 'C.UTF-8',
      LOOKED_FOR: log,
      ANSWER: String(answer),
      'BASH_FUNC_command_not_found_handle%%': handler,
    },
  };
  const child = spawnSync('/bin/bash', ['--norc', '--noprofile', '-c', text], options);
  expect(child.error).toBeUndefined();
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // the whole group has ended already
  }
  if (!existsSync(log)) return [];
  return readFileSync(log, 'utf8')
    .split('\x1e')
    .slice(0, -1)
    .map((line) => line.split('\x1f').slice(0, -1));
};

const isListed = ([name = '', ...args]: readonly string[], { programs }: CommandReading): boolean =>
  programs.some((program) => {
    if (program.via.some((via) => via === name)) return true;
    if (program.name !== name) return false;
    // A word that is not known may become any number of words.
    const known = program.args.includes(null) ? null : program.args;
    return known === null || JSON.stringify(known) === JSON.stringify(args);
  });

const texts = [...corpus('ordinary'), ...corpus('hostile')].flatMap((each) => {
  const text = 'text' in each ? String(each.text) : '';
  return text !== '' && isSafe(text) && read({ text }).reading.uninspectable.length === 0 ? [text] : [];
});
const isSimple = (text: string): boolean => read({ text }).reading.simple;

describe('what bash itself looks for is in the reading', () => {
  let tried = 0;
  const check = (text: string): void => {
    const { reading } = read({ text });
    const answers = /\|\||\b(if|while|until)\b|!/.test(text) ? ([0, 1] as const) : ([0] as const);
    for (const answer of answers)
      for (const found of lookedFor(text, answer)) {
        tried += 1;
        expect(isListed(found, reading), `${JSON.stringify(found)} in ${JSON.stringify(reading.programs)}`).toBe(true);
      }
  };
  const simple = texts.filter(isSimple);
  it.each([0, 1, 2, 3, 4, 5])('of simple commands, many at once (%d)', (part) => {
    check(simple.filter((_text, at) => at % 6 === part).join('\n'));
  });
  it.each(texts.filter((text) => !isSimple(text)))('%j', (text) => {
    check(text);
  });
  it('and the trial was one: hundreds of programs were looked for', () => {
    expect(tried).toBeGreaterThan(250);
  });
});
