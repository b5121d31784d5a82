/** Puts a path or lines into the message that is being written (F-07). */
import type { ConversationState } from '#lib/state/contract.ts';

export const addToDraft = (conversation: ConversationState, addition: string): void => {
  const { draft } = conversation;
  const gap = draft === '' || /\s$/u.test(draft) ? '' : addition.includes('\n') ? '\n\n' : ' ';
  conversation.draft = `${draft}${gap}${addition}${addition.includes('\n') ? '\n' : ' '}`;
};

/** Lines as a fenced quotation with where they are from; the fence outgrows every fence inside (case 38). */
export const quoteLines = (path: string, from: number, lines: readonly string[]): string => {
  const body = lines.join('\n');
  const longest = Math.max(2, ...Array.from(body.matchAll(/`+/gu), (match) => match[0].length));
  const fence = '`'.repeat(longest + 1);
  const place = lines.length === 1 ? `${path}:${from}` : `${path}:${from}-${from + lines.length - 1}`;
  return `@${place}\n${fence}\n${body}\n${fence}`;
};
