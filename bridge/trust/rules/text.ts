/**
 * Text (W-11): words that speak to an agent behind the reader's back, and characters that hide words. Pure. In
 * documentation a signal is a caution; in what agents are told to read, two kinds of signals together block, as does a
 * signal beside a command that fetches or hides what it runs.
 */
import type { Kind } from '../kinds.ts';
import { fold, linesOf, tagged, type Lines } from '../words.ts';
import { near } from './near.ts';
import { signsIn } from './execution.ts';
import type { Hit } from './table.ts';

type Signal = 'override' | 'conceal' | 'exfiltrate' | 'bypass';
/** On folded text: ASCII, lower case, single spaces. */
const signals: readonly { readonly signal: Signal; readonly anchor: RegExp; readonly test: RegExp }[] = [
  { signal: 'override', anchor: /\b(?:ignore|disregard|forget|override|bypass)\b/g, test: /^ (?:all |any |every |the |your |these |my )*(?:of )?(?:the |your )?(?:previous|prior|above|earlier|preceding|existing|system|former|other|safety)(?: \w+)? (?:instructions?|prompts?|rules?|messages?|guidelines?|directions?|context)/ },
  { signal: 'override', anchor: /\byou are (?:now|no longer)\b/g, test: /^ (?:an? |in |the )?(?:\w+ )?(?:developer mode|dan\b|jailbroken|unrestricted|bound by|unfiltered|restricted)/ },
  { signal: 'override', anchor: /\b(?:new|updated|real|hidden) (?:system prompt|system instructions?|instructions? from the (?:user|developer|system))\b/g, test: /^/ },
  { signal: 'conceal', anchor: /\b(?:do not|don't|never|without|avoid|must not)\b/g, test: /^ (?:ever |you )?(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|show(?:ing)?|reveal(?:ing)?|notify(?:ing)?|alert(?:ing)?|report(?:ing)?|disclos(?:e|ing)|say(?:ing)?) (?:\w+ ){0,6}?(?:to |by )?(?:the |your |any )?(?:users?|operator|human|developer|owner|person)\b/ },
  { signal: 'conceal', anchor: /\b(?:secretly|silently|covertly|quietly|in the background)\b/g, test: /^,? (?:run|execute|send|upload|post|copy|install|fetch|download|append|add|commit|push|exfiltrate)\b/ },
  { signal: 'exfiltrate', anchor: /\b(?:send|post|upload|exfiltrate|transmit|forward|leak|append|include|encode|curl)\b/g, test: /^ (?:\w+ ){0,10}?(?:contents? of |all )?(?:the |your |any |every )*(?:\S*\.env\b|environment variables|env vars|api[ -]?keys?|secrets?|credentials?|passwords?|private keys?|ssh keys?|~\/\.ssh|\S*id_rsa|access tokens?|auth tokens?|session tokens?|\S*\.aws\b)(?: \w+){0,12}? (?:to|via|in|at|as) [^.\n]{0,40}?(?:https?:|\burl\b|server|endpoint|webhook|a (?:request|query|image)|parameter|comment|issue|pull request|\bdns\b)/ },
  { signal: 'exfiltrate', anchor: /\b(?:cat|read|open|print|base64)\b/g, test: /^ (?:the )?(?:file )?(?:~|\$home|\/home\/\w+|\/root)?\/?\.(?:ssh\/|aws\/credentials|netrc|npmrc|config\/gh)[^.]{0,120}?(?:\band\b|\bthen\b|\||>)/ },
  { signal: 'bypass', anchor: /\b(?:without|never|do not|don't|skip|no need)\b/g, test: /^ (?:to )?(?:ask(?:ing)?|wait(?:ing)?|request(?:ing)?|require|requiring)? ?(?:for )?(?:any |the |user |operator |human )*(?:permissions?|approvals?|confirmations?|consent)\b/ },
  { signal: 'bypass', anchor: /\b(?:approve|accept|allow|answer yes to)\b/g, test: /^ (?:all|every|any) (?:tool calls?|permission(?: request| prompt)?s?|actions?|commands?|prompts?|requests?) (?:automatically|by default|without)/ },
]; // prettier-ignore

/** Folded text, lines joined by a space since a sentence may run over the end of one, and where each line begins in it. */
const folded = (text: string): { text: string; lineOf: (index: number) => number } => {
  const parts = text.split('\n').map((line) => fold(line).trim());
  const starts = linesOf(parts.join('\n'));
  return { text: parts.join(' '), lineOf: starts.lineOf };
};

export const injectionHits = (kind: Kind, text: string, lines: Lines): Hit[] => {
  const { text: plain, lineOf } = folded(text);
  const found = signals.flatMap(({ signal, anchor, test }) =>
    near(plain, anchor, 400)
      .filter(({ slice }) => test.test(slice.replace(/ {2,}/g, ' ')))
      .map(({ at }) => ({ signal, line: lineOf(at) })),
  );
  if (found.length === 0) return [];
  const paired =
    new Set(found.map(({ signal }) => signal)).size > 1 || found.some(({ signal }) => signal === 'exfiltrate');
  const hidden = signsIn(text).some(({ sign }) => sign !== 'execution.inline');
  const isBlocking = hidden || (paired && (kind === 'instruction' || kind === 'agent'));
  const byLine = new Map(found.map(({ line }) => [line, lines.text(line)] as const));
  return [...byLine].map(([line, exact]) => ({
    rule: 'text.injection',
    line,
    exact,
    severity: isBlocking ? 'block' : 'warn',
  }));
};

const direction = /[\u202a-\u202e\u2066-\u2069]/g;
/** Tags (not those of a flag) and runs of variation selectors: whole sentences can be written in them. */
const smuggled =
  /(?<!\u{1f3f4}[\u{e0020}-\u{e007f}]{0,12})[\u{e0001}\u{e0020}-\u{e007f}]{2,}|[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]{6,}/gu;
const zeroWidth = /(?<=\p{L})[\u200b\u2060\u2061-\u2064\u180e\ufeff]+(?=\p{L})/gu;

/** What is drawn as nothing, or turns the direction of writing. Told by escapes in the evidence. */
export const hiddenHits = (kind: Kind, text: string, lines: Lines): Hit[] => {
  const steers = kind === 'instruction' || kind === 'agent' || kind === 'manifest' || kind === 'git';
  const at = (pattern: RegExp): number[] => near(text, pattern, 0, 0).map((place) => place.at);
  const hit = (rule: Hit['rule'], index: number, severity: 'block' | 'warn' | 'note', evidence?: string): Hit => {
    const line = lines.lineOf(index);
    const exact = lines.text(line);
    return { rule, line, exact, severity, ...(evidence === undefined ? {} : { evidence }) };
  };
  const said = (index: number): string => tagged(text.slice(index, index + 2000));
  return [
    ...at(direction).map((index) => hit('text.bidi', index, steers ? 'block' : 'warn')),
    ...at(smuggled).map((index) =>
      hit(
        'text.hidden',
        index,
        steers || kind === 'source' || kind === 'shell' ? 'block' : 'warn',
        said(index) === '' ? undefined : `written invisibly: ${said(index)}`,
      ),
    ),
    ...at(zeroWidth).map((index) => hit('text.hidden', index, steers ? 'warn' : 'note')),
  ];
};
