/**
 * Programs that run other programs, or code, by an option or a script of their own (editors, `tar`, `sed`, `awk` …). The
 * rule not to break: only what is known to run nothing passes. The table is data about programs. Pure.
 */
import { wordSet, type Word } from './sheet.ts';

/** Options by which a program runs another one, or code; also abbreviated. */
const runners: Readonly<Record<string, RegExp>> = {
  tar: /^(--(checkpoint-a|to-c|use-comp|rsh-c|new-vol|info-s|rmt)|-[a-zA-Z]*[IF])/,
  bsdtar: /^--use-comp/,
  rsync: /^(--(rsh|rsync-path)|-[a-zA-Z]*e)/,
  scp: /^-[a-zA-Z0-9]*[oSFD]/,
  sftp: /^-[a-zA-Z0-9]*[oSFDb]/,
  split: /^--fil/,
  sort: /^--compress-p/,
  rg: /^--(pre|hostname-bin)(=|$)/,
  zip: /^(-[a-zA-Z]*T|--unzip-c)/,
  less: /^\+/,
  more: /^\+/,
  man: /^(-[a-zA-Z]*[PH]|--(pager|html))/,
  wget: /^(--(use-ask|exec|config)|-e)/,
  curl: /^(-[a-zA-Z#]*K|--config)/,
  npm: /^--(script-shell|node-options|shell|git)(=|$)/,
  pnpm: /^--(script-shell|node-options|shell)(=|$)/,
  go: /^-?-(exec|toolexec|vettool|modcacherw)(=|$)/,
  cargo: /^--config(=|$)/,
  make: /^(--eval|-[a-zA-Z]*E|SHELL=|.*\$\()/,
  gmake: /^(--eval|-[a-zA-Z]*E|SHELL=|.*\$\()/,
  gdb: /^-?-(ex|iex|x|eval|command|init|batch)/,
  sqlite3: /^\s*\.|\n\s*\.|^-(cmd|init)/,
  psql: /\\!|\\copy|\\o|\\g|\bprogram\b/i,
  mysql: /\\!|\bsystem\b/,
  find: /^-f(print0?|printf|ls)$/,
  nmap: /^--(script|datadir)/,
  tcpdump: /^-[a-zA-Z]*z/,
};
const editors = /^(\+|-c|-S|-s|-u|--cmd|-e$|-E$|--eval|-f$|-l$|--load|--batch|--script|--funcall)/;
/** Builtins that change what later words mean. */
const meaning = wordSet('alias fc bind complete compopt enable hash');
const plainSed =
  /^(?:(?:\d+|\$|\/[^/\\]*\/)(?:,(?:[+~]?\d+|\$|\/[^/\\]*\/))?)?!?(?:[pdqQ=]|s([/|#,:])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpiI0-9]*)$/;
const riskyAwk = /\bsystem\b|\bgetline\b|\||>|@|\bclose\b|-f\b|^#!/;

/** Why it cannot be told what a call runs; null when it runs nothing but itself. */
export const runsOthers = (name: string, args: readonly Word[]): string | null => {
  const texts = args.map(({ value }) => value);
  const runner = Object.hasOwn(runners, name) ? runners[name] : undefined;
  if (runner !== undefined && texts.some((text) => text !== null && runner.test(text)))
    return `${name} can run other programs, or write files, as it is called here.`;
  if (/^(g?vim?|nvim|view|emacs|ex)$/.test(name) && texts.some((text) => text === null || editors.test(text)))
    return `An option of ${name} can run commands.`;
  if (
    meaning.has(name) &&
    args.length > 0 &&
    !(name === 'hash' && !texts.some((text) => text === null || text.startsWith('-')))
  )
    return `${name} changes what later words mean.`;
  if (/^g?sed$/.test(name)) {
    const scripts = scriptsOf(texts);
    const isPlain = (text: string): boolean =>
      text.split(/;|\n/).every((part) => part.trim() === '' || plainSed.test(part.trim()));
    if (scripts === null || !scripts.every((text) => plainSed.test(text) || isPlain(text)))
      return 'A sed script can run programs and write files; this one is not read.';
  }
  if (/^[gmn]?awk$/.test(name)) {
    const first = texts.find(
      (text, index) => text === null || (!text.startsWith('-') && !/^-[vF]$/.test(texts[index - 1] ?? '')),
    );
    if (
      typeof first !== 'string' ||
      riskyAwk.test(first) ||
      texts.some((text) => text !== null && /^(-[fieEl]|--(file|exec|include|load|source))/.test(text))
    )
      return 'An awk program can run programs and write files; this one is not read.';
  }
  return null;
};

/** The scripts of a sed call; null when they come from a file or are not known. */
const scriptsOf = (texts: readonly (string | null)[]): string[] | null => {
  const given: string[] = [];
  let first: string | null | undefined;
  for (let at = 0; at < texts.length; at += 1) {
    const text = texts[at] ?? null;
    if (text === null) return null;
    if (/^(-[a-zA-Z]*e|--expression)$/.test(text)) {
      const next = texts[(at += 1)];
      if (typeof next !== 'string') return null;
      given.push(next);
    } else if (
      /^(-[nEriszu]+|-i[.~]\w*|--(quiet|silent|regexp-extended|in-place|null-data|debug|posix|sandbox))$/.test(text)
    )
      continue;
    else if (text.startsWith('-')) return null;
    else first ??= text;
  }
  return given.length > 0 ? given : typeof first === 'string' ? [first] : null;
};
