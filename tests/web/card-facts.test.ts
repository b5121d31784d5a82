import { render } from 'svelte/server';
import { describe, expect, it } from 'vitest';
import type { CommandReading } from '#protocol/events.ts';
import { words } from '../../web/text/approval.en.ts';
import Reading from '../../web/view/approval/Reading.svelte';
import Risks from '../../web/view/approval/Risks.svelte';
import Diff from '../../web/view/conversation/Diff.svelte';

/** What a reader gets: the text of the markup, entities undone. */
const textOf = (html: string): string =>
  html
    .replace(/<!--.*?-->|<style>.*?<\/style>|<[^>]*>/gs, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
const simple: CommandReading = {
  form: 'shell',
  programs: [{ name: 'npm', args: ['test'], via: [] }],
  operators: [],
  redirections: [],
  substitutions: [],
  assignments: [],
  hereDocuments: 0,
  hosts: [],
  uninspectable: [],
  simple: true,
};
const read = (change: Partial<CommandReading>): string =>
  render(Reading, { props: { reading: { ...simple, ...change } } }).body;

describe('the parsed command in words (R-02, U-05)', () => {
  it('is there, folded, when it says nothing new', () => {
    const html = read({});
    expect(html).not.toMatch(/<details[^>]* open/);
    expect(textOf(html)).toContain(words.reading.simple);
    expect(read({ hosts: ['example.dev'] })).toMatch(/<details[^>]* open/);
  });

  it('says what it is reached through once, and where that ends', () => {
    const via = ['sudo', 'sh'];
    const text = textOf(
      read({
        simple: false,
        operators: ['&&', ';'],
        programs: [
          { name: 'ls', args: [], via },
          { name: 'rm', args: ['-rf', ''], via },
          { name: null, args: [null], via: [] },
        ],
      }),
    );
    expect(text.match(/through sudo, sh/g)).toHaveLength(1);
    expect(text).toContain(words.reading.joins['&&']);
    expect(text).toContain(words.card.empty);
    expect(text).toMatch(/directly.*a program only known when it runs.*only known when it runs/s);
  });

  it('names the place of a redirection, hosts, what it installs and what it cannot see', () => {
    const text = textOf(
      read({
        simple: false,
        redirections: [
          { operator: '2>>', target: '/etc/hosts', place: 'outside' },
          { operator: '>', target: null, place: 'unknown' },
        ],
        substitutions: ['date +%s'],
        assignments: ['TOKEN'],
        hereDocuments: 2,
        hosts: ['get.example.dev'],
        install: { manager: 'npm', packages: ['left-pad'], registry: 'https://r.example', global: true, scripts: true },
        uninspectable: ['It runs what it fetches.'],
      }),
    );
    for (const part of [
      'appends to',
      '/etc/hosts',
      words.card.place.outside,
      words.card.place.unknown,
      'date +%s',
      'TOKEN',
      '2 texts fed in',
      'get.example.dev',
      'left-pad',
      'with npm',
      'from https://r.example',
      words.reading.global,
      words.reading.scripts,
      words.reading.uninspectable,
      'It runs what it fetches.',
    ])
      expect(text, part).toContain(part);
  });

  it('writes out what cannot be seen, in every part of it (T37)', () => {
    const hidden = 'a\u202Eb';
    const html = read({
      programs: [{ name: hidden, args: [hidden], via: [hidden] }],
      operators: [hidden],
      redirections: [{ operator: hidden, target: hidden, place: 'inside' }],
      substitutions: [hidden],
      assignments: [hidden],
      hosts: [hidden],
      install: { manager: hidden, packages: [hidden], registry: hidden, global: false, scripts: false },
      uninspectable: [hidden],
      simple: false,
    });
    expect(html).not.toContain('\u202E');
    expect(textOf(html).match(/⟨U\+202E⟩/g)?.length).toBeGreaterThanOrEqual(12);
  });
});

describe('risk notes', () => {
  it('stand worst first, each with its level as a word; agent configuration has a note of its own', () => {
    const text = textOf(
      render(Risks, {
        props: {
          risks: [
            { code: 'a', level: 'note', sentence: 'Small.' },
            { code: 'agent_config', level: 'stop', sentence: 'Configures.' },
            { code: 'c', level: 'warn', sentence: 'Middle.' },
          ],
        },
      }).body,
    );
    expect(text).toMatch(/Danger\s*Configures\..*Read every line\..*Careful\s*Middle\..*Note\s*Small\./s);
  });
});

describe('a change on the card, to the byte (F-05, R-13)', () => {
  const diff = (oldText: string | null, newText: string): string =>
    render(Diff, { props: { change: { path: 'a.txt', oldText, newText }, conversation: null, inertText: true } }).body;

  it('draws blanks that changed, and leaves them what they are', () => {
    const html = diff('\tx\n', '    x\n');
    expect(html).toContain('data-glyphs="→"');
    expect(html).toContain('data-glyphs="····"');
    expect(html).toMatch(/data-glyphs="→"[^>]*>(<!--[^>]*-->)*\t</);
    expect(textOf(html)).toContain('only spacing or line ends change');
  });

  it('shows a line end that changed as a line that changed', () => {
    const text = textOf(diff('a\r\nb\r\n', 'a\nb\n'));
    expect(text).toContain('⟨U+000D⟩');
    expect(text).toContain('only spacing or line ends change');
    expect(textOf(diff('\na\r\n', '\nb\r\n')), 'one bare line end among others').toContain('⟨U+000D⟩');
    expect(textOf(diff('a\r\n', 'b\r\n'))).toContain('Lines end with CRLF');
  });

  it('says on which side the last line end is missing', () => {
    expect(textOf(diff('a\n', 'a'))).toContain('Now the file has no line end at its end.');
    expect(textOf(diff('a', 'a\n'))).toContain('now it has one');
    expect(textOf(diff('a', 'b'))).toContain('before and after');
  });

  it('cuts no long line in silence', () => {
    const text = textOf(diff('', `${'x'.repeat(50_000)}\n`));
    expect(text).toMatch(/33,616 more characters\s+not shown/);
    expect(text).toContain('Show long lines to their end');
  });
});
