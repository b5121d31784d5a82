/**
 * Some agents ask to run a command without giving the input of their tool (agents.md 7.2). Where the catalogue knows
 * which of their words hold the command, it is read from there, so that it can be shown, hashed and signed; that these
 * are only words is said on the card. Pure. Used by running.ts.
 */
import type { CatalogueEntry } from './catalogue.ts';
import type { ToolCallState, WordedCommand } from './contract.ts';

const empty: readonly (string | undefined)[] = [undefined, '', '{}', '[]', 'null'];

/** Undefined for anything but a command without input, in words of the known form. */
export const wordedCommand = (call: ToolCallState, worded: CatalogueEntry['worded']): WordedCommand | undefined => {
  if (worded === null || call.kind !== 'execute' || !empty.includes(call.rawInput?.trim())) return undefined;
  const said = call.content?.flatMap((part) => (part.type === 'text' ? [part.text] : [])) ?? [];
  for (const text of worded.in === 'title' ? [call.title ?? ''] : said) {
    const start = worded.after.find((before) => text.startsWith(before));
    const command = start === undefined ? '' : text.slice(start.length);
    if (command === '') continue;
    // A whole one of that very length with the same last character counts as cut: shown with more care, never with less.
    return { text: command, whole: worded.cutAt === null || command.length <= worded.cutAt || !command.endsWith('…') };
  }
  return undefined;
};
