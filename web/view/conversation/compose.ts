/** What the composer decides without the page: keys, tokens, the parts of a prompt. Pure. */
import { limits } from '#protocol/limits.ts';
import type { BlobRef } from '#protocol/events.ts';
import type { PromptPart } from '#protocol/methods/conversation.ts';

export interface Key {
  readonly key: string;
  readonly keyCode: number;
  readonly isComposing: boolean;
  readonly shiftKey: boolean;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
}

/** The key belongs to an input method; Safari says so only by its code, after the composition ended (case 42). */
export const isInputMethod = (key: Pick<Key, 'isComposing' | 'keyCode'>): boolean =>
  key.isComposing || key.keyCode === 229;

/** `modEnter`: Enter starts a line, Ctrl or ⌘ with it sends. */
export const sends = (key: Key, modEnter: boolean): boolean => {
  if (key.key !== 'Enter' || isInputMethod(key) || key.altKey || key.shiftKey) return false;
  const mod = key.ctrlKey || key.metaKey;
  return modEnter ? mod : !mod;
};

export interface Token {
  readonly kind: 'file' | 'command';
  readonly query: string;
  readonly from: number;
  readonly to: number;
}

/** What is being typed at the caret: a file mention, or a command at the very start. */
export const tokenAt = (text: string, caret: number): Token | null => {
  const before = text.slice(0, caret);
  const command = /^\/([^\s/]*)$/.exec(before);
  if (command !== null) return { kind: 'command', query: command[1] ?? '', from: 0, to: caret };
  const mention = /(?:^|[\s([{])@("?)([^\s"@]*)$/.exec(before);
  if (mention === null) return null;
  const query = mention[2] ?? '';
  return { kind: 'file', query, from: caret - query.length - (mention[1] ?? '').length - 1, to: caret };
};

export const mentionOf = (path: string): string => (/[\s"]/.test(path) ? `@"${path.replaceAll('"', '')}"` : `@${path}`);

/** Paths mentioned in a text, once each, in order; a sentence's punctuation is not part of them. */
export const mentions = (text: string): readonly string[] => {
  const found = [...text.matchAll(/(?<=^|[\s([{])@(?:"([^"\n]+)"|([^\s"@]+))/g)].map(
    (match) => match[1] ?? (match[2] ?? '').replace(/[.,;:!?)\]}]+$/, ''),
  );
  return [...new Set(found.filter((path) => path !== ''))];
};

export const byteLength = (text: string): number => new TextEncoder().encode(text).length;

/** A line end inside a text field, and no text when there are only attachments. */
export const promptParts = (text: string, attachments: readonly BlobRef[], files: readonly string[]): PromptPart[] => {
  const parts: PromptPart[] = text.trim() === '' ? [] : [{ type: 'text', text }];
  for (const blob of attachments) parts.push({ type: 'blob', blob });
  for (const path of files) parts.push({ type: 'file', path });
  return parts.slice(0, limits.promptBlobs + 1);
};
