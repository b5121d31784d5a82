/**
 * Execution (W-11): what installing, opening or building runs, and three signs of a command that hides what it does.
 * Pure. A sign weighs by where it stands: what runs by itself blocks, what a person reads and types is noted.
 */
import type { Severity } from '#protocol/methods/trust.ts';
import type { Kind } from '../kinds.ts';
import { leavesOf } from '../jsonc.ts';
import type { Lines } from '../words.ts';
import { near } from './near.ts';
import type { Hit, RuleId } from './table.ts';

type Sign = Extract<RuleId, 'execution.download' | 'execution.encoded' | 'execution.inline'>;

const shells = '(?:sudo\\s+(?:-\\w+\\s+)*)?(?:/usr)?(?:/bin/)?(?:env\\s+)?(?:ba|z|k|da|a)?sh\\b';
const interpreters = '(?:sudo\\s+)?(?:python[23]?|node|perl|ruby|php|deno|bun)\\b';
const fetchers = '(?:curl|wget|fetch|aria2c|http)';
const into = (what: string): string => `[^\\n]{0,300}\\|\\s{0,8}(?:${what})`;

interface Pattern {
  readonly sign: Sign;
  /** Cheap, global: where to look closer. */
  readonly anchor: RegExp;
  /** Of what follows the anchor, at most `span` units. */
  readonly test: RegExp;
  readonly before?: number;
}
const patterns: readonly Pattern[] = [
  {
    sign: 'execution.download',
    anchor: /\b(?:curl|wget|aria2c)\b/g,
    test: new RegExp(`^${into(`${shells}|${interpreters}`)}`),
  },
  {
    sign: 'execution.download',
    anchor: /(?:\$\(|`|<\()\s{0,8}(?:curl|wget)\b/g,
    before: 40,
    test: new RegExp(
      `(?:\\b(?:ba|z|da|k)?sh|\\beval|\\bsource|(?:^|[\\s;&|])\\.)\\s[^\\n]{0,30}(?:\\$\\(|\`|<\\()\\s{0,8}${fetchers}\\b`,
    ),
  },
  {
    sign: 'execution.download',
    anchor: /\b(?:curl|wget)\b/g,
    test: /^[^\n]{0,200}?(?:-o|-O|--output|>)\s{0,4}["']?([\w./~$-]{1,100})["']?[^\n]{0,100}?(?:&&|;)[^\n]{0,60}?(?:chmod\s+\S{1,8}|(?:ba|z)?sh|python3?|node)\s+["']?\1/,
  },
  {
    sign: 'execution.download',
    anchor: /\b(?:iex|invoke-expression)\b/gi,
    test: /^[^\n]{0,120}(?:downloadstring|\birm\b|\biwr\b|invoke-(?:webrequest|restmethod))/i,
  },
  { sign: 'execution.download', anchor: /\b(?:irm|iwr|invoke-webrequest)\b/gi, test: /^[^\n]{0,200}\|\s{0,8}iex\b/i },
  {
    sign: 'execution.encoded',
    anchor: /\bbase64\b/g,
    test: new RegExp(`^\\s{1,8}(?:-d|-D|--decode)\\b${into(`${shells}|${interpreters}`)}`),
  },
  {
    sign: 'execution.encoded',
    anchor: /\b(?:xxd|openssl)\b/g,
    test: new RegExp(`^[^\\n|]{0,80}(?:-r|-d)\\b${into(shells)}`),
  },
  {
    sign: 'execution.encoded',
    anchor: /\b(?:eval|Function|execSync|exec|runInThisContext|loadstring)\s{0,4}\(/g,
    test: /^\s{0,8}(?:\w{1,30}\.){0,2}(?:atob|unescape|b64decode|decode|Buffer\s?\.\s?from\s?\([^\n)]{0,4000}["'](?:base64|hex)["']|__import__\s?\(\s?["']base64|base64\s?\.|bytes\.fromhex|codecs\.decode|zlib\.decompress|String\.fromCharCode\s?\((?:\s?\d{1,3}\s?,){8})/,
  },
  {
    sign: 'execution.encoded',
    anchor: /\b(?:powershell|pwsh)\b/gi,
    test: /^[^\n]{0,80}-e(?:nc|ncodedcommand)?\s{1,4}[A-Za-z0-9+/=]{20,}/i,
  },
  {
    sign: 'execution.encoded',
    anchor: /\b(?:python3?|node|perl|ruby)\s+-[ec]\b/g,
    test: /^[^\n]{0,80}(?:b64decode|base64|fromCharCode|\\x[0-9a-f]{2}\\x)/,
  },
  { sign: 'execution.inline', anchor: /\b(?:node|bun|deno)\s+(?:-e|--eval|-p|--print|-pe|eval)\b/g, test: /^/ },
  { sign: 'execution.inline', anchor: /\b(?:python[23]?\s+-c|perl\s+-e|ruby\s+-e|php\s+-r)\b/g, test: /^/ },
];

/** The signs in a text, each once a line. */
export const signsIn = (text: string): { sign: Sign; at: number }[] =>
  patterns.flatMap(({ sign, anchor, test, before }) =>
    near(text, anchor, 4200, before)
      .filter(({ slice }) => test.test(slice))
      .map(({ at }) => ({ sign, at })),
  );

/** What a sign weighs in a command that runs by itself; in a file of this kind; null where it says nothing. */
const weights: Readonly<Record<Kind | 'command', Readonly<Record<Sign, Severity | null>>>> = {
  command: { 'execution.download': 'block', 'execution.encoded': 'block', 'execution.inline': 'warn' },
  agent: { 'execution.download': 'block', 'execution.encoded': 'block', 'execution.inline': 'warn' },
  git: { 'execution.download': 'block', 'execution.encoded': 'block', 'execution.inline': 'warn' },
  manifest: { 'execution.download': 'warn', 'execution.encoded': 'block', 'execution.inline': null },
  instruction: { 'execution.download': 'block', 'execution.encoded': 'block', 'execution.inline': null },
  shell: { 'execution.download': 'warn', 'execution.encoded': 'block', 'execution.inline': null },
  source: { 'execution.download': null, 'execution.encoded': 'block', 'execution.inline': null },
  doc: { 'execution.download': 'note', 'execution.encoded': 'warn', 'execution.inline': null },
  env: { 'execution.download': null, 'execution.encoded': null, 'execution.inline': null },
  infra: { 'execution.download': 'warn', 'execution.encoded': 'block', 'execution.inline': null },
};

/** Without one of these no sign fits: a plain search is many times cheaper than any pattern. */
const hints = [
  ...['curl', 'wget', 'aria2c', 'base64', 'xxd', 'openssl', 'atob', 'unescape', 'b64decode', 'fromhex', 'fromCharCode'],
  ...[
    'codecs',
    'zlib',
    'owershell',
    'OWERSHELL',
    'pwsh',
    'iex',
    'IEX',
    'nvoke-',
    ' -e',
    ' --e',
    ' -c',
    ' -p',
    ' --p',
    ' -r',
  ],
];
/** In sources, where commands are only words, code that decodes and runs is all that counts. */
const sourceHints = hints.slice(3, 15);

/** Signs in a whole file. */
export const executionHits = (kind: Kind, text: string, lines: Lines): Hit[] => {
  if (!(kind === 'source' ? sourceHints : hints).some((hint) => text.includes(hint))) return [];
  const seen = new Set<string>();
  return signsIn(text).flatMap(({ sign, at }) => {
    const severity = weights[kind][sign];
    const line = lines.lineOf(at);
    if (severity === null || seen.has(`${sign} ${line}`)) return [];
    seen.add(`${sign} ${line}`);
    return [{ rule: sign, line, exact: lines.text(line), severity }];
  });
};

/** Signs in one command that runs by itself. */
export const commandHits = (command: string, line: number): Hit[] => {
  const signs = new Set(signsIn(command).map(({ sign }) => sign));
  return [...signs].flatMap((sign) => {
    const severity = weights.command[sign];
    return severity === null ? [] : [{ rule: sign, line, exact: command, severity }];
  });
};

const lifecycle =
  /^(preinstall|install|postinstall|preprepare|prepare|postprepare|prepublish|dependencies|post-install-cmd|pre-install-cmd|post-update-cmd|post-autoload-dump)$/;
/** What nearly every project does there: named, and of no weight. */
const usual =
  /^(?:(?:husky(?: install)?|npm run build|tsc(?: -[\w-]+(?: [\w./]+)?)*|patch-package|node-gyp(?:-build)?(?: rebuild)?|prebuild-install|lefthook install|simple-git-hooks|is-ci|only-allow (?:npm|pnpm|yarn)|npx only-allow (?:npm|pnpm|yarn)|svelte-kit sync|prisma generate|ngcc|electron-builder install-app-deps|true|:)(?:\s*(?:&&|\|\||;)\s*|$))+$/;

export const manifestHits = (path: string, text: string, lines: Lines): Hit[] => {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  if (name === '.pnpmfile.cjs') return [{ rule: 'execution.install_hook', line: 1, exact: text }];
  if (name.startsWith('.')) return settingHits(text, lines);
  if (name === 'binding.gyp')
    return near(text, /<!@?\(/g, 300, 0).map(({ at, slice }) => ({
      rule: 'execution.lifecycle',
      line: lines.lineOf(at),
      exact: slice,
    }));
  return leavesOf(text).leaves.flatMap(({ path: [section, script = ''], value, at }) => {
    if (section !== 'scripts' || typeof value !== 'string' || !lifecycle.test(script)) return [];
    const line = lines.lineOf(at);
    const hits = commandHits(value, line);
    const severity = usual.test(value.trim()) ? 'note' : 'warn';
    return [{ rule: 'execution.lifecycle', line, exact: `${script}: ${value}`, severity } as const, ...hits];
  });
};

/** .npmrc and .yarnrc.yml: what makes the package manager run or load something. */
const settingHits = (text: string, lines: Lines): Hit[] =>
  near(
    text,
    /^[ \t]*(?:script-shell|node-options|git|init-module|onload-script|yarnPath|plugins)[ \t]*[:=]/gm,
    300,
    0,
  ).map(({ at, slice }) => {
    const isUsual = /^\s*yarnPath:\s*\.yarn\/releases\/yarn-[\d.]+\.cjs\s*$/.test(slice);
    return {
      rule: 'execution.install_hook',
      line: lines.lineOf(at + slice.search(/\S/)),
      exact: slice,
      severity: isUsual ? 'note' : 'warn',
    };
  });
