/**
 * Git (W-11): hooks that are there, settings that run something, submodules from odd places. Pure. What a program's path
 * says weighs: one that lies in the folder came with it.
 */
import { shown, type Lines } from '../words.ts';
import { commandHits } from './execution.ts';
import { near } from './near.ts';
import type { Hit } from './table.ts';

/** `section.key` in lower case, sections without their name. */
const running =
  /^(core\.(fsmonitor|hookspath|sshcommand|pager|editor|askpass|gitproxy|alternaterefscommand)|filter\.(clean|smudge|process)|diff\.(external|textconv|command)|merge\.driver|mergetool\.cmd|difftool\.cmd|interactive\.difffilter|credential\.helper|gpg\.program|sequence\.editor|pager\.\w+|alias\.\w+|remote\.(uploadpack|receivepack|vcs|proxy)|uploadpack\.packobjectshook|sendemail\.sendmailcmd|browser\.cmd|man\.cmd|init\.templatedir|protocol\.\w*\.?allow|submodule\.update)$/;

const isHarmless = (key: string, value: string): boolean =>
  (key === 'core.fsmonitor' && /^(true|false|)$/i.test(value)) ||
  (key.startsWith('alias.') && !value.startsWith('!')) ||
  (key.startsWith('pager.') && /^(true|false)$/i.test(value)) ||
  (key.startsWith('filter.') && /^git-lfs (clean|smudge|filter-process)( --skip)?( --)?( %f)?$/.test(value)) ||
  (key === 'submodule.update' && !value.startsWith('!')) ||
  (key === 'core.hookspath' && value === '') ||
  (key === 'protocol.allow' && value !== 'always') ||
  (key === 'credential.helper' && /^(|cache|store|osxkeychain|manager|libsecret|wincred)( --[\w=-]+)*$/.test(value)) ||
  (/^core\.(editor|pager|askpass)$/.test(key) && /^[\w-]+( -[\w-]+)*$/.test(value));

/** Names a file of this folder, or a whole shell line. */
const isLocal = (value: string): boolean =>
  /^!?\s*(\.{0,2}\/?[\w-]*\/|\.)/.test(value) && !/^!?\s*\/(usr|bin|opt|home|Users|nix|snap)\//.test(value);

const withoutPassword = (text: string): string => text.replace(/\/\/[^@/\s]*@/g, '//•••@');

const configHits = (text: string, lines: Lines): Hit[] => {
  let section = '';
  // A backslash at the end of a line joins the next to it.
  const joined = text.replace(/\\\r?\n/g, (match) => ' '.repeat(match.length));
  return near(joined, /^[ \t]*(?=\S)/gm, 2000, 0).flatMap(({ at, slice }): Hit[] => {
    const head = /^\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]/.exec(slice);
    if (head !== null) section = (head[1] ?? '').toLowerCase().split('.')[0] ?? '';
    const rest = head === null ? slice : slice.slice(head[0].length);
    const [, name = '', raw = ''] = /^\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?$/.exec(rest.trimEnd()) ?? [];
    if (name === '') return [];
    const key = `${section}.${name.toLowerCase()}`;
    const value = raw
      .replace(/\s+[#;].*$/, '')
      .replace(/^"(.*)"$/, '$1')
      .replace(/\\(["\\])/g, '$1')
      .trim();
    const line = lines.lineOf(at + slice.search(/\S/));
    const exact = `${key} = ${value}`;
    const evidence = withoutPassword(exact);
    if ((section === 'include' || section === 'includeif') && key.endsWith('.path'))
      return [{ rule: 'git.include', line, exact, evidence }];
    if (section === 'submodule' && name.toLowerCase() === 'url') return submoduleHits(value, line);
    if (!running.test(key) || isHarmless(key, value)) return [];
    const isBlocking = isLocal(value) && !/^core\.hookspath$|^alias\./.test(key);
    return [
      { rule: 'git.runs', line, exact, evidence, severity: isBlocking ? 'block' : 'warn' },
      ...commandHits(value, line),
    ];
  });
};

const submoduleHits = (url: string, line: number): Hit[] => {
  const isCommand = /^-|^ext::|^fd::|[\r\n]|^\s*!/.test(url);
  const isPlain = /^(http|git|ftp):\/\//i.test(url) || /^(file:|\/)/i.test(url);
  if (!isCommand && !isPlain) return [];
  return [
    { rule: 'git.submodule', line, exact: url, evidence: withoutPassword(url), severity: isCommand ? 'block' : 'warn' },
  ];
};

const hookHits = (path: string, text: string, lines: Lines): Hit[] => {
  const first = near(text.slice(0, 65_536), /^[ \t]*[^\s#]/gm, 300, 0)[0];
  const line = first === undefined ? 1 : lines.lineOf(first.at);
  const name = path.slice(path.lastIndexOf('/') + 1);
  const evidence = text.startsWith('\u007fELF')
    ? `${name}: a program`
    : `${name}: ${shown(first?.slice ?? 'empty', 120)}`;
  return [{ rule: 'git.hook', line, exact: text, evidence }];
};

export const gitHits = (path: string, text: string, lines: Lines): Hit[] =>
  /\.git\/hooks\//i.test(path) ? hookHits(path, text, lines) : configHits(text, lines);
