/** Habits that the compiler cannot keep: read from the source text. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { errorCodes, isErrorCode } from '#protocol/errors.ts';
import { eventTypes } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import { methodNames, methods } from '#protocol/methods.ts';
import { commonErrors } from '#protocol/methods/method.ts';

const source = (path: string): string => readFileSync(new URL(`../../protocol/${path}`, import.meta.url), 'utf8');
const groups = readdirSync(new URL('../../protocol/methods/', import.meta.url)).filter((file) => file !== 'method.ts');

/** Method names in the order they are written down. */
const written = (file: string): string[] =>
  [...source(`methods/${file}`).matchAll(/^ {2}'([a-z]+\.[a-zA-Z]+)': \{/gm)].map(([, name]) => name as string);

describe('method table (D-13)', () => {
  test.each(groups)('methods are sorted by name in %s', (file) => {
    const names = written(file);
    expect(names.length).toBeGreaterThan(0);
    expect(names).toEqual([...names].sort());
  });

  test('every method is written in exactly one group', () => {
    expect(groups.flatMap(written).sort()).toEqual(methodNames);
  });

  test('every error code a method names is in the closed list (D-70), once', () => {
    for (const name of methodNames) {
      const codes: readonly string[] = methods[name].errors;
      expect([name, codes.filter((code) => !isErrorCode(code))]).toEqual([name, []]);
      expect([name, codes.length]).toEqual([name, new Set(codes).size]);
    }
    expect(commonErrors.filter((code) => !isErrorCode(code))).toEqual([]);
  });

  test('every code in the source of the protocol that is made into a refusal exists', () => {
    const files = readdirSync(new URL('../../protocol/', import.meta.url)).filter((file) => file.endsWith('.ts'));
    const made = files.flatMap((file) =>
      [...source(file).matchAll(/new Refusal\('([a-z_]+)'/g)].map(([, code]) => code as string),
    );
    expect(made.length).toBeGreaterThan(0);
    expect(made.filter((code) => !isErrorCode(code))).toEqual([]);
  });
});

describe('errors (D-70)', () => {
  test('codes are snake_case and every sentence ends as one', () => {
    for (const code of errorCodes) expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    const sentences = [...source('errors.ts').matchAll(/^ {2}[a-z_]+: \[\s*'([^']+)'/gm)].map(
      ([, sentence]) => sentence as string,
    );
    expect(sentences.length).toBe(errorCodes.length);
    for (const sentence of sentences) expect(sentence).toMatch(/^[A-Z].*\.$/);
  });
});

describe('limits', () => {
  /** The lines of the literal between `limits = {` and its end. */
  const lines = source('limits.ts').split('\n');
  const start = lines.findIndex((line) => line.startsWith('export const limits'));
  const end = lines.findIndex((line, index) => index > start && line.startsWith('}'));
  const body = lines.slice(start + 1, end);

  test('every limit is read here', () => {
    expect(body.filter((line) => /^ {2}[a-zA-Z]+:/.test(line)).length).toBe(Object.keys(limits).length);
  });

  test('every limit has a comment of its own that says why', () => {
    const bare = body.filter((line, index) => /^ {2}[a-zA-Z]+:/.test(line) && !/\*\/$/.test(body[index - 1] ?? ''));
    expect(bare).toEqual([]);
    for (const line of body.filter((text) => /^ {2}\/\*\*.*\*\/$/.test(text))) expect(line.length).toBeGreaterThan(20);
  });
});

describe('events (D-41)', () => {
  test('types are named once', () => {
    expect(new Set(eventTypes).size).toBe(eventTypes.length);
  });
});
