import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commandReading } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import { z } from '#protocol/schema.ts';
import { read } from './readings.ts';

const tokens = [
  ...[
    'id',
    'git',
    'sudo',
    'env',
    'bash',
    '-c',
    'eval',
    'xargs',
    'find',
    '-exec',
    'npx',
    'cd',
    'time',
    'x=1',
    '-',
    '--',
  ],
  ...[
    ' ',
    ' ',
    ' ',
    '\n',
    ';',
    '&',
    '&&',
    '||',
    '|',
    '(',
    ')',
    '{',
    '}',
    '`',
    '$(',
    '${',
    '$((',
    '))',
    '[[',
    ']]',
    '\\',
  ],
  ...[
    "'",
    '"',
    "$'",
    '<<E',
    '\nE\n',
    '<<<',
    '<(',
    '>',
    '2>&1',
    '*',
    '?',
    '~',
    '#',
    '!',
    '\r',
    '\0',
    '\u202e',
    'if',
    'then',
    'fi',
    'for',
  ],
  ...[
    'in',
    'do',
    'done',
    'case',
    'esac',
    'function',
    'coproc',
    '/etc/passwd',
    '../x',
    'http://127.1/',
    '@',
    '=',
    '\ud800',
  ],
];
const noise = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.array(fc.constantFrom(...tokens), { maxLength: 40 }).map((parts) => parts.join('')),
  fc.array(fc.constantFrom(...tokens), { maxLength: 40 }).map((parts) => parts.join(' ')),
);
const plainWord = fc.string({ unit: fc.constantFrom(...'abcXYZ019_@%+:,./-'), minLength: 1, maxLength: 8 });
const simple = fc
  .tuple(fc.constantFrom('git status', 'npm run', 'ls', 'cat'), fc.array(plainWord, { maxLength: 4 }))
  .map(([program, args]) => [program, ...args].join(' '));

describe('reading a command', () => {
  it('is total: any text and any argv get a reading that fits its event, and the same one again', () => {
    fc.assert(
      fc.property(noise, fc.array(noise, { maxLength: 6 }), (text, argv) => {
        for (const command of [{ text }, { argv }, { argv: ['bash', '-c', text] }]) {
          const found = read(command);
          expect(z.safeParse(commandReading, found.reading).success).toBe(true);
          expect(JSON.stringify([found.reading, found.paths]).length).toBeLessThan(limits.eventBytes / 2);
          expect(read(command).reading).toEqual(found.reading);
        }
      }),
      { numRuns: 400 },
    );
  });

  it('calls nothing simple once anything is added that a shell acts on (R-16)', () => {
    const additions = [
      '; id',
      '$(id)',
      ' | sh',
      '\nid',
      ' & id',
      ' && id',
      ' `id`',
      ' >x',
      ' <(id)',
      '\\',
      '*',
      "'",
      '"',
    ];
    fc.assert(
      fc.property(simple, fc.constantFrom(...additions), (text, addition) => {
        expect(read({ text }).reading.simple).toBe(true);
        expect(read({ text: text + addition }).reading.simple).toBe(false);
      }),
      { numRuns: 300 },
    );
  });

  it('lists what is added as a program, or says that it cannot be read', () => {
    const additions = [
      '; evil',
      '\nevil',
      ' | evil',
      ' && evil',
      ' $(evil)',
      ' "`evil`"',
      ' <(evil)',
      '; sudo -n evil',
      '; sh -c "evil"',
      ' & { evil; }',
    ];
    fc.assert(
      fc.property(noise, fc.constantFrom(...additions), (text, addition) => {
        const { reading } = read({ text: `true ${text}${addition}` });
        const isListed = reading.programs.some(({ name }) => name === 'evil');
        // In a quote, a comment or a here-document it is no program: then the text ends there, and so does the reading.
        const isWord = !/['"#\\<]|`|\$\{|\[\[|\(\(|case|for|=\(/.test(text);
        if (isWord) expect(isListed || reading.uninspectable.length > 0).toBe(true);
        expect(reading.simple).toBe(false);
      }),
      { numRuns: 400 },
    );
  });
});
