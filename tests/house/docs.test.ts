import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { closeCodes, errorCodes } from '#protocol/errors.ts';
import { eventTypes } from '#protocol/events.ts';
import { methodNames, methods } from '#protocol/methods.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const doc = (name: string): string => readFileSync(`${root}${name}`, 'utf8');

describe('docs/PROTOCOL.md', () => {
  const text = doc('docs/PROTOCOL.md');
  it('names every method with its capability', () => {
    expect(
      methodNames.filter(
        (name) =>
          !text.includes(`| \`${name}\` | ${methods[name].capability} |`) &&
          !new RegExp(`\\| \`${name.replace('.', '\\.')}\` +\\| ${methods[name].capability} +\\|`).test(text),
      ),
    ).toEqual([]);
  });
  it('names every event type', () => expect(eventTypes.filter((type) => !text.includes(`\`${type}\``))).toEqual([]));
  it('names every error code', () => expect(errorCodes.filter((code) => !text.includes(`\`${code}\``))).toEqual([]));
  it('names every close code', () =>
    expect(Object.values(closeCodes).filter((code) => !text.includes(`| ${code} `))).toEqual([]));
});

describe('documentation', () => {
  const pages = [
    'README.md',
    'docs/ARCHITECTURE.md',
    'docs/PROTOCOL.md',
    'docs/RECEIPTS.md',
    'docs/THREATS.md',
    'docs/GLOSSARY.md',
    'docs/CONTRIBUTING.md',
    'docs/CHANGELOG.md',
  ];
  it.each(pages)('%s exists, and its links lead somewhere', (page) => {
    const folder = page.includes('/') ? `${root}docs/` : root;
    const links = [...doc(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((match) => match[1] ?? '');
    expect(links.filter((link) => !existsSync(`${folder}${link}`))).toEqual([]);
  });
  it('names every verb of the bridge in the README', () => {
    const verbs = [...doc('bridge/cli/verbs.ts').matchAll(/^ {2}(\w+): async \(\) =>/gm)].map(
      (match) => match[1] ?? '',
    );
    expect(verbs.length).toBeGreaterThan(8);
    expect(verbs.filter((verb) => !doc('README.md').includes(`\`${verb}\``))).toEqual([]);
  });
});
