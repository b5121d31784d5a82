/**
 * Markdown as a tree of known kinds (U-40): markdown-it makes tokens, this keeps what we can draw and nothing else. Its
 * HTML renderer is never called. What cannot be parsed becomes one plain block with the text as it came.
 */
import MarkdownIt from 'markdown-it';
import type { Env, Token } from 'markdown-it';
import { linkTarget } from './link.ts';

export type Inline =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'break' }
  | { readonly kind: 'strong'; readonly children: readonly Inline[] }
  | { readonly kind: 'em'; readonly children: readonly Inline[] }
  | { readonly kind: 'strike'; readonly children: readonly Inline[] }
  | { readonly kind: 'link'; readonly href: string; readonly host: string; readonly children: readonly Inline[] }
  /** Never fetched: drawn as words, with a link where there is a safe one. */
  | {
      readonly kind: 'image';
      readonly alt: string;
      readonly href: string | null;
      readonly host: string | null;
      readonly source: string;
    };

export interface Item {
  /** Null where it is not a task. */
  readonly done: boolean | null;
  readonly blocks: readonly Block[];
}
export type Align = 'start' | 'center' | 'end' | null;
export type Block =
  | { readonly kind: 'paragraph'; readonly inlines: readonly Inline[]; readonly tight: boolean }
  | { readonly kind: 'heading'; readonly level: number; readonly inlines: readonly Inline[] }
  | { readonly kind: 'list'; readonly start: number | null; readonly items: readonly Item[] }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | { readonly kind: 'code'; readonly lang: string; readonly text: string }
  | {
      readonly kind: 'table';
      readonly align: readonly Align[];
      readonly head: readonly (readonly Inline[])[];
      readonly rows: readonly (readonly (readonly Inline[])[])[];
    }
  | { readonly kind: 'rule' }
  /** Markdown that could not be read as such. */
  | { readonly kind: 'plain'; readonly text: string };

/** A top-level block: `at` is where its source starts, in UTF-16 units; its identity while text streams. */
export interface Top {
  readonly at: number;
  readonly block: Block;
}

const reader = new MarkdownIt({ html: false, linkify: true, typographer: false, maxNesting: 50 });
// Links are judged when drawn; here everything passes, so that a refused one still shows its words.
reader.validateLink = () => true;
// Only what is written as an address becomes one: `main.rs` is a file, not a host.
reader.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });

/** The part of a token's fields used here; everything else of markdown-it stays outside. */
interface Cursor {
  readonly tokens: readonly Token[];
  at: number;
}

const attribute = (token: Token, name: string): string => token.attrGet(name)?.toString() ?? '';

const inlineNode = (cursor: Cursor, token: Token): Inline | null => {
  switch (token.type) {
    case 'text':
    case 'text_special':
    case 'html_inline':
      return token.content === '' ? null : { kind: 'text', text: token.content };
    case 'code_inline':
      return { kind: 'code', text: token.content };
    case 'softbreak':
      return { kind: 'text', text: '\n' };
    case 'hardbreak':
      return { kind: 'break' };
    case 'strong_open':
      return { kind: 'strong', children: inlinesUntil(cursor, 'strong_close') };
    case 'em_open':
      return { kind: 'em', children: inlinesUntil(cursor, 'em_close') };
    case 's_open':
      return { kind: 'strike', children: inlinesUntil(cursor, 's_close') };
    case 'link_open': {
      const link = linkTarget(attribute(token, 'href'));
      const children = inlinesUntil(cursor, 'link_close');
      if (link !== null) return { kind: 'link', ...link, children };
      return { kind: 'link', href: '', host: '', children };
    }
    case 'image': {
      const source = attribute(token, 'src');
      const link = linkTarget(source, ['http:', 'https:']);
      return { kind: 'image', alt: token.content, href: link?.href ?? null, host: link?.host ?? null, source };
    }
    default:
      return token.content === '' ? null : { kind: 'text', text: token.content };
  }
};

const inlinesUntil = (cursor: Cursor, close: string | null): Inline[] => {
  const out: Inline[] = [];
  while (cursor.at < cursor.tokens.length) {
    const token = cursor.tokens[cursor.at];
    cursor.at += 1;
    if (token === undefined || token.type === close) break;
    const node = inlineNode(cursor, token);
    const last = out.at(-1);
    if (node === null) continue;
    if (node.kind === 'text' && last?.kind === 'text')
      out[out.length - 1] = { kind: 'text', text: last.text + node.text };
    else out.push(node);
  }
  return out;
};

const inlines = (token: Token | undefined): Inline[] => inlinesUntil({ tokens: token?.children ?? [], at: 0 }, null);

const taskMark = /^\[([ xX])\](?:\s+|$)/;
/** `- [x] words`: the mark leaves the text and becomes the item's state. */
const asItem = (blocks: readonly Block[]): Item => {
  const [first, ...rest] = blocks;
  const lead = first?.kind === 'paragraph' ? first.inlines[0] : undefined;
  const mark = lead?.kind === 'text' ? taskMark.exec(lead.text) : null;
  if (first?.kind !== 'paragraph' || lead?.kind !== 'text' || mark === null) return { done: null, blocks };
  const text = lead.text.slice(mark[0].length);
  const shown = text === '' ? first.inlines.slice(1) : [{ kind: 'text' as const, text }, ...first.inlines.slice(1)];
  return { done: mark[1] !== ' ', blocks: [{ ...first, inlines: shown }, ...rest] };
};

const table = (cursor: Cursor): Block => {
  const align: Align[] = [];
  const rows: (readonly Inline[])[][] = [];
  let headRows = 0;
  let row: (readonly Inline[])[] = [];
  while (cursor.at < cursor.tokens.length) {
    const token = cursor.tokens[cursor.at];
    cursor.at += 1;
    if (token === undefined || token.type === 'table_close') break;
    if (token.type === 'tr_open') row = [];
    if (token.type === 'tr_close') rows.push(row);
    if (token.type === 'thead_close') headRows = rows.length;
    if (token.type === 'inline') row.push(inlines(token));
    if (token.type === 'th_open') {
      const style = attribute(token, 'style');
      align.push(
        style.includes('center') ? 'center' : style.includes('right') ? 'end' : style.includes('left') ? 'start' : null,
      );
    }
  }
  return { kind: 'table', align, head: rows[0] ?? [], rows: rows.slice(headRows) };
};

const list = (cursor: Cursor, open: Token): Block => {
  const close = open.type.replace('_open', '_close');
  const items: Item[] = [];
  while (cursor.at < cursor.tokens.length) {
    const token = cursor.tokens[cursor.at];
    cursor.at += 1;
    if (token === undefined || token.type === close) break;
    if (token.type === 'list_item_open') items.push(asItem(blocksUntil(cursor, 'list_item_close')));
  }
  const start = open.type === 'ordered_list_open' ? Number(open.attrGet('start') ?? 1) : null;
  return { kind: 'list', start, items };
};

const blockNode = (cursor: Cursor, token: Token): Block | null => {
  switch (token.type) {
    case 'paragraph_open': {
      const inner = inlines(cursor.tokens[cursor.at]);
      cursor.at += 2;
      return { kind: 'paragraph', inlines: inner, tight: token.hidden };
    }
    case 'heading_open': {
      const inner = inlines(cursor.tokens[cursor.at]);
      cursor.at += 2;
      return { kind: 'heading', level: Number(token.tag.slice(1)), inlines: inner };
    }
    case 'bullet_list_open':
    case 'ordered_list_open':
      return list(cursor, token);
    case 'blockquote_open':
      return { kind: 'quote', blocks: blocksUntil(cursor, 'blockquote_close') };
    case 'fence':
      return { kind: 'code', lang: token.info.trim().split(/\s+/)[0] ?? '', text: token.content };
    case 'code_block':
      return { kind: 'code', lang: '', text: token.content };
    case 'table_open':
      return table(cursor);
    case 'hr':
      return { kind: 'rule' };
    case 'inline':
      // Beyond the nesting bound markdown-it leaves bare inline tokens.
      return { kind: 'paragraph', inlines: inlines(token), tight: false };
    default:
      return token.content === '' ? null : { kind: 'plain', text: token.content };
  }
};

const blocksUntil = (cursor: Cursor, close: string): Block[] => {
  const out: Block[] = [];
  while (cursor.at < cursor.tokens.length) {
    const token = cursor.tokens[cursor.at];
    cursor.at += 1;
    if (token === undefined || token.type === close) break;
    const node = blockNode(cursor, token);
    if (node !== null) out.push(node);
  }
  return out;
};

/** Start of each line of `text`, and its end. */
const lineStarts = (text: string): number[] => {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
};

/** As markdown-it reads it: one kind of line end, no NUL. Offsets are into this text. */
export const normalise = (text: string): string => text.replace(/\r\n?/g, '\n').replaceAll('\0', '\uFFFD');

/** `offset` is added to each block's place. `defines`: the text holds link definitions, which reach other blocks. */
export const parseTops = (text: string, offset = 0): { readonly tops: readonly Top[]; readonly defines: boolean } => {
  const env: Env = {};
  try {
    const tokens = reader.parse(text, env);
    const starts = lineStarts(text);
    const cursor: Cursor = { tokens, at: 0 };
    const tops: Top[] = [];
    while (cursor.at < tokens.length) {
      const token = tokens[cursor.at];
      cursor.at += 1;
      if (token === undefined) break;
      const line = token.map?.[0] ?? 0;
      const block = blockNode(cursor, token);
      if (block !== null) tops.push({ at: offset + (starts[line] ?? 0), block });
    }
    return { tops, defines: Object.keys(env.references ?? {}).length > 0 };
  } catch (cause) {
    // Hostile text may defeat the reader; the words still have to be readable.
    console.warn('markdown: shown as plain text', cause);
    return { tops: [{ at: offset, block: { kind: 'plain', text } }], defines: false };
  }
};

export const parse = (text: string): readonly Block[] => parseTops(normalise(text)).tops.map((top) => top.block);

/** Words only: for names, announcements and copying as text. */
export const inlineText = (nodes: readonly Inline[]): string =>
  nodes
    .map((node) => {
      if (node.kind === 'text' || node.kind === 'code') return node.text;
      if (node.kind === 'break') return '\n';
      if (node.kind === 'image') return node.alt;
      return inlineText(node.children);
    })
    .join('');
