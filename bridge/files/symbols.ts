/**
 * What a source file defines and what it leans on, told line by line from patterns: hints, and called so wherever they are
 * shown. No parser, because this is for a couple of hundred files within a request, in languages whose grammars would each
 * have to be shipped. The rule not to break: the text is hostile, so every pattern takes time linear in its line, and
 * nothing leaves this file but identifiers and import names of closed alphabets. Pure. Called by sources.ts and excerpts.ts.
 */
import { limits } from '#protocol/limits.ts';

export interface Definition {
  readonly name: string;
  /** From 1. */
  readonly line: number;
  readonly exported: boolean;
  /** Of a class: found when it is asked for, not told in a map. */
  readonly member: boolean;
}
export interface Hints {
  readonly definitions: readonly Definition[];
  /** A package with `/` between its parts, or a path that begins with `.`; once each, in order. */
  readonly imports: readonly string[];
}

interface Language {
  readonly name: string;
  readonly endings: readonly string[];
  /** Each finds one name in a line whose runs of blanks are one. */
  readonly defines: readonly RegExp[];
  /** As `defines`, of lines that are indented further than a definition of the file. */
  readonly members?: readonly RegExp[];
  readonly imports: readonly RegExp[];
  /** What an import names, as `Hints.imports` has it. */
  readonly spell?: (name: string, line: string) => string;
  readonly isExported: (line: string, name: string) => boolean;
  /** Text over several lines: a line that begins one and does not end it, up to a line with the end. */
  readonly comment?: readonly [begin: RegExp, end: string];
  /** Only between a line that begins with `<script` and one with its end. */
  readonly script?: boolean;
  /** Columns that a definition of the file itself may be indented by. */
  readonly indent?: number;
}

// Not followed by a letter beyond ASCII either: half a name is none.
const name = String.raw`([A-Za-z_$][\w$]{0,79})(?![\w$\u0080-\uffff])`;
const specifier = String.raw`([\w@.$/#~:+-]{1,200})`;
const quoted = `['"]${specifier}['"]`;
/** `I` is an identifier, `S` an import name in quotes; blanks in a pattern are single. */
const pattern = (text: string): RegExp => new RegExp(text.replace('(I)', name).replace('(S)', quoted));
const dotted = String.raw`([\w.]{1,200})`;

const slashes = [/^\/\*(?!.*\*\/)/, '*/'] as const;
const always = (): boolean => true;
const hasWord =
  (...words: readonly string[]) =>
  (line: string): boolean =>
    words.some((word) => line.startsWith(`${word} `) || line.includes(` ${word} `));

const scriptPatterns = {
  defines: [
    pattern(
      '^(?:export )?(?:default )?(?:declare )?(?:abstract )?(?:async )?(?:function ?\\*? ?|class |interface |namespace |(?:const )?enum )(I)',
    ),
    pattern('^(?:export )?(?:declare )?type (I) ?[<=]'),
    // What is only fetched from elsewhere is defined there.
    pattern('^(?:export )?(?:declare )?(?:const|let|var) (I)(?! ?= ?(?:await )?(?:require|import) ?\\()'),
  ],
  members: [
    // A call that ends in a block is none, and says so by its arrow or its `function`.
    pattern(
      '^(?:public |private |protected |static |override |readonly |async |get |set ){0,5}[*#]?(?!(?:if|for|while|switch|catch|with|function) ?\\()(I) ?[(<](?!.*(?:=>|function)).*\\{$',
    ),
  ],
  imports: [
    pattern('^(?:import|export|\\}) ?[^\'"]{0,399}from ?(S)'),
    pattern('^import ?(S)'),
    pattern('(?:require|import) ?\\( ?(S)'),
  ],
  spell: (spec: string): string =>
    spec.startsWith('.') ? spec : spec.split('/', spec.startsWith('@') ? 2 : 1).join('/'),
  isExported: (line: string): boolean => line.startsWith('export '),
  comment: slashes,
};

const javaWords =
  '(?:public |protected |private |internal |static |final |abstract |sealed |open |data |inline |suspend |override |partial |readonly |async |virtual |extern ){0,6}';
const method = pattern(
  '^(?:public |protected |private |internal |static |final |abstract |override |async |virtual |synchronized |default ){1,6}[\\w<>\\[\\].?,]{1,120} (I) ?\\(',
);

const languages: readonly Language[] = [
  { name: 'TypeScript', endings: ['ts', 'tsx', 'mts', 'cts'], ...scriptPatterns },
  { name: 'JavaScript', endings: ['js', 'jsx', 'mjs', 'cjs'], ...scriptPatterns },
  { name: 'Svelte', endings: ['svelte'], ...scriptPatterns, script: true, indent: 2 },
  { name: 'Vue', endings: ['vue'], ...scriptPatterns, script: true, indent: 2 },
  {
    name: 'Python',
    endings: ['py', 'pyi'],
    defines: [pattern('^(?:async )?def (I)'), pattern('^class (I)'), /^([A-Z][A-Z0-9_]{1,79}) ?=[^=]/],
    members: [pattern('^(?:async )?def (I)')],
    imports: [new RegExp(`^from ${dotted} import`), new RegExp(`^import ${dotted}`)],
    // One dot is this folder, each further one the folder above.
    spell: (spec) => {
      const dots = spec.length - spec.replace(/^\.+/, '').length;
      const rest = spec.slice(dots).replaceAll('.', '/');
      return dots === 0 ? rest : `./${'../'.repeat(dots - 1)}${rest}`;
    },
    isExported: (_, symbol) => !symbol.startsWith('_'),
    comment: [/^[^'"#]*(?:"""(?!.*""")|'''(?!.*'''))/, '"""'],
  },
  {
    name: 'Go',
    endings: ['go'],
    defines: [pattern('^func (?:\\([^()]{0,200}\\) )?(I)'), pattern('^(?:type|var|const) (I)')],
    imports: [pattern('^import (?:[\\w.]{1,80} )?(S)'), pattern('^(?:[\\w.]{1,80} )?(S)$')],
    isExported: (_, symbol) => /^[A-Z]/.test(symbol),
    comment: slashes,
  },
  {
    name: 'Rust',
    endings: ['rs'],
    defines: [
      pattern(
        '^(?:pub(?:\\([^()]{1,80}\\))? )?(?:default |const |async |unsafe |extern "C" ){0,4}(?:fn |struct |enum |trait |union |mod |type |static |const |macro_rules! )(I)',
      ),
    ],
    members: [pattern('^(?:pub(?:\\([^()]{1,80}\\))? )?(?:const |async |unsafe ){0,3}fn (I)')],
    imports: [/^(?:pub )?(?:use|extern crate) ((?!crate\b|self\b|super\b)\w{1,80})/],
    isExported: (line) => line.startsWith('pub'),
    comment: slashes,
  },
  {
    name: 'Java',
    endings: ['java'],
    defines: [pattern(`^${javaWords}(?:class |interface |@interface |enum |record )(I)`)],
    members: [method],
    imports: [new RegExp(`^import (?:static )?${dotted};`)],
    spell: (spec) => spec.split('.').slice(0, -1).join('/'),
    isExported: hasWord('public'),
    comment: slashes,
  },
  {
    name: 'Kotlin',
    endings: ['kt', 'kts'],
    defines: [pattern(`^${javaWords}(?:class |interface |enum class |object |typealias |fun |val |var )(I)`)],
    members: [pattern(`^${javaWords}fun (I)`)],
    imports: [new RegExp(`^import ${dotted}$`)],
    spell: (spec) => spec.split('.').slice(0, -1).join('/'),
    isExported: (line) => !hasWord('private', 'internal')(line),
    comment: slashes,
  },
  {
    name: 'C#',
    endings: ['cs'],
    // Most of a file lies in a namespace.
    indent: 4,
    defines: [pattern(`^${javaWords}(?:class |interface |struct |enum |record |delegate )(I)`)],
    members: [method],
    imports: [new RegExp(`^using (?:static )?${dotted};`)],
    spell: (spec) => spec.replaceAll('.', '/'),
    isExported: hasWord('public'),
    comment: slashes,
  },
  {
    name: 'Ruby',
    endings: ['rb', 'rake'],
    defines: [pattern('^(?:class|module) (I)'), pattern('^def (?:self\\.)?(I)')],
    members: [pattern('^(?:class|module) (I)'), pattern('^def (?:self\\.)?(I)')],
    imports: [pattern('^require (S)'), pattern('^require_relative (S)')],
    spell: (spec, line) => (line.startsWith('require_relative') ? `./${spec}` : spec),
    isExported: always,
    comment: [/^=begin/, '=end'],
  },
  {
    name: 'PHP',
    endings: ['php'],
    defines: [pattern('^(?:abstract |final |readonly ){0,3}(?:function &?|class |interface |trait |enum )(I)')],
    members: [pattern('^(?:abstract |final |public |protected |private |static ){0,4}function &?(I)')],
    imports: [/^use (?:function |const )?\\?([\w\\]{1,200})/],
    spell: (spec) => spec.split('\\')[0] ?? '',
    isExported: always,
    comment: slashes,
  },
  {
    name: 'Swift',
    endings: ['swift'],
    defines: [
      pattern(
        '^(?:public |open |internal |private |fileprivate |final |indirect |@MainActor ){0,4}(?:func |class |struct |enum |protocol |actor |extension |typealias )(I)',
      ),
    ],
    members: [pattern('^(?:public |open |internal |private |static |override |mutating |class ){0,4}func (I)')],
    imports: [pattern('^import (I)')],
    isExported: hasWord('public', 'open'),
    comment: slashes,
  },
  {
    name: 'C and C++',
    endings: ['c', 'h', 'cc', 'cpp', 'cxx', 'hh', 'hpp', 'hxx'],
    defines: [
      pattern('^# ?define (I)'),
      pattern('^(?:typedef )?(?:struct|class|enum class|enum|union|namespace) (I)(?! ?[;*])'),
      // The last word before the first bracket; a statement has no type in front.
      pattern(
        '^(?!(?:return|else|if|for|while|switch|typedef|using|delete|throw) )(?=[\\w:*&<>, ]{1,200}\\()(?:[^(]*[ *&:])(I) ?\\(',
      ),
    ],
    imports: [/^# ?include "([\w./+-]{1,200})"/, /^# ?include <([\w./+-]{1,200})>/],
    spell: (spec, line) => (line.includes('"') ? `./${spec}` : spec),
    isExported: (line) => !line.startsWith('static '),
    comment: slashes,
  },
  {
    name: 'Shell',
    endings: ['sh', 'bash', 'zsh'],
    defines: [pattern('^function (I)'), pattern('^(I) ?\\( ?\\)')],
    imports: [/^(?:source|\.) "?(\.{1,2}\/[\w./+-]{1,200})/],
    isExported: always,
  },
];
const byEnding = new Map(
  languages.flatMap((language) => language.endings.map((ending) => [ending, language] as const)),
);

const languageAt = (path: string): Language | null =>
  byEnding.get(/\.(\w{1,8})$/.exec(path)?.[1]?.toLowerCase() ?? '') ?? null;
/** By its ending; null for what is not known. */
export const languageOf = (path: string): string | null => languageAt(path)?.name ?? null;

/** Of the text of one file, or of its beginning; nothing for a language that is not known. */
export const hintsOf = (path: string, text: string): Hints => {
  const language = languageAt(path);
  const definitions: Definition[] = [];
  const imports = new Set<string>();
  if (language !== null)
    for (const { line, number, indent } of codeLines(language, text)) {
      const definition = definitionIn(language, line, number, indent);
      if (definition !== null) definitions.push(definition);
      const spec = firstMatch(language.imports, line);
      const spelled = spec === null ? '' : (language.spell?.(spec, line) ?? spec);
      if (spelled !== '') imports.add(spelled);
    }
  return { definitions, imports: [...imports] };
};

interface CodeLine {
  /** Its runs of blanks are one, and none at its ends: so no pattern has to try where blanks end. */
  readonly line: string;
  readonly number: number;
  readonly indent: number;
}

/** Lines that may say something: not empty, not overlong, outside of comments over several lines and of other tags. */
function* codeLines({ comment, script = false }: Language, text: string): Generator<CodeLine> {
  let [number, end, isCode] = [0, '', !script];
  for (const raw of text.split('\n')) {
    number += 1;
    const line = raw.length > limits.hintLineUnits ? '' : raw.trim().replace(/\s+/g, ' ');
    if (line === '') continue;
    if (end !== '') {
      if (line.includes(end)) end = '';
    } else if (script && /^<\/?script\b/.test(line)) isCode = !line.startsWith('</') && !line.includes('</script');
    else if (comment?.[0].test(line) === true) end = endOf(comment[1], line);
    else if (isCode) yield { line, number, indent: raw.length - raw.trimStart().length };
  }
}
/** Python has two quotes for the same. */
const endOf = (end: string, line: string): string => (end === '"""' && line.includes("'''") ? "'''" : end);

const definitionIn = (language: Language, line: string, number: number, indent: number): Definition | null => {
  const own = indent <= (language.indent ?? 0) ? firstMatch(language.defines, line) : null;
  if (own !== null) return { name: own, line: number, exported: language.isExported(line, own), member: false };
  const member = indent > 0 ? firstMatch(language.members ?? [], line) : null;
  return member === null ? null : { name: member, line: number, exported: false, member: true };
};

const firstMatch = (patterns: readonly RegExp[], line: string): string | null => {
  for (const each of patterns) {
    const found = each.exec(line)?.[1];
    if (found !== undefined) return found;
  }
  return null;
};
