/**
 * A conversation as a document (U-09): JSON with every event and receipt, Markdown, or one self-contained HTML page.
 * Agent text is hostile here too: the page runs nothing, loads nothing and shows text as text.
 */
import type { AnyEvent, BlobRef } from '#protocol/events.ts';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { ConversationSummary } from '#protocol/methods/conversation.ts';
import { splitBlocks, type BlockEvents } from '#protocol/outline.ts';
import { projectBlock } from '#protocol/project.ts';
import type { BlockView, Entry } from '#protocol/view.ts';
import type { Ledger } from '../ledger/contract.ts';

export type ExportFormat = 'json' | 'md' | 'html';
type Source = Pick<Ledger, 'scan' | 'read'>;

const mimes: Record<ExportFormat, string> = { json: 'application/json', md: 'text/markdown', html: 'text/html' };

/**
 * The document in pieces of about a page: nobody waits for a long transcript to be rendered, and what writes it to a
 * file holds no more than a block of it.
 */
export async function* renderConversation(
  source: Source,
  summary: ConversationSummary,
  format: ExportFormat,
): AsyncGenerator<string> {
  if (format === 'json') return yield* renderJson(source, summary);
  yield format === 'md' ? headMarkdown(summary) : headHtml(summary);
  for await (const blocks of blockViews(source, summary.conversationId)) {
    yield blocks.map(format === 'md' ? blockMarkdown : blockHtml).join('');
  }
  if (format === 'html') yield '</body></html>\n';
}

/** As a blob of the conversation, for the app. @throws Refusal content_too_large */
export const exportConversation = async (
  rooms: { ledger: Ledger },
  summary: ConversationSummary,
  format: ExportFormat,
): Promise<BlobRef> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of renderConversation(rooms.ledger, summary, format)) {
    pieces.push(Buffer.from(piece));
    bytes += pieces.at(-1)?.length ?? 0;
    if (bytes > limits.blobBytes) throw tooLarge(summary, format);
  }
  const name = `${summary.title.replaceAll(/[^\p{L}\p{N}]+/gu, '-').slice(0, 60) || 'conversation'}.${format}`;
  return rooms.ledger.blobs.put(summary.conversationId, Buffer.concat(pieces), { mime: mimes[format], name });
};

const tooLarge = ({ conversationId }: ConversationSummary, format: ExportFormat): Refusal =>
  new Refusal('content_too_large', {
    message: `This export is too large for the app. Run "bridge conversations export ${conversationId} --format ${format}".`,
  });

/** Every block as it is shown, some at a time; a block is whole once the next one begins. */
async function* blockViews(source: Source, conversationId: string): AsyncGenerator<BlockView[]> {
  let rest: readonly AnyEvent[] = [];
  const views = (blocks: readonly BlockEvents[]): BlockView[] =>
    blocks.map((block) => projectBlock(block.firstSeq, block.events, { complete: true }));
  for await (const page of source.scan(conversationId)) {
    const blocks = splitBlocks([...rest, ...page]);
    rest = blocks.pop()?.events ?? [];
    yield views(blocks);
  }
  yield views(splitBlocks(rest));
}

async function* renderJson(source: Source, summary: ConversationSummary): AsyncGenerator<string> {
  yield `{"format":"countersign/conversation/v1",\n"conversation":${JSON.stringify(summary)},\n"events":[`;
  let comma = '\n';
  for await (const page of source.scan(summary.conversationId)) {
    yield page.map((event) => `${event === page[0] ? comma : ',\n'}${JSON.stringify(event)}`).join('');
    comma = ',\n';
  }
  const receipts = source.read
    .receipts({ conversationId: summary.conversationId, limit: Number.MAX_SAFE_INTEGER })
    .reverse()
    .map(({ payload, signature, ...row }) => ({
      ...row,
      payload: Buffer.from(payload).toString('base64'),
      signature: Buffer.from(signature).toString('base64'),
    }));
  yield `\n],\n"receipts":[${receipts.map((row) => `\n${JSON.stringify(row)}`).join(',')}\n]}\n`;
}

/** A fence longer than any run of backticks inside (CommonMark 4.5). */
const fenced = (text: string, info = ''): string => {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${info}\n${text}\n${fence}`;
};

const statusWord = (entry: Extract<Entry, { kind: 'approval' }>): string => {
  const { status, outcome } = entry;
  const why = status.state === 'withdrawn' ? ` (${status.reason})` : '';
  return `${status.state}${why}${outcome === null ? '' : `, ${outcome}`}`;
};

const entryMarkdown = (entry: Entry): string => {
  switch (entry.kind) {
    case 'message': {
      const who = { user: '**You**', agent: '**Agent**', thought: '_Thought_' }[entry.role];
      const files = entry.attachments
        .map((blob) => `\n\n(attachment ${blob.name ?? blob.sha256}, ${blob.bytes} bytes)`)
        .join('');
      return `${who}${entry.interrupted ? ' (interrupted)' : ''}\n\n${entry.text}${files}`;
    }
    case 'tool':
      return `- tool: ${entry.title.replaceAll('\n', ' ')} (${entry.toolKind}, ${entry.status})${entry.rawInput === undefined ? '' : `\n\n${fenced(entry.rawInput, 'json')}`}`;
    case 'approval': {
      const receipts = entry.receipts.map((receipt) => `receipt ${receipt.receiptSeq} (${receipt.kind})`).join(', ');
      return `> Approval: ${entry.request.facts.headline} · ${statusWord(entry)}\n> digest ${entry.request.digest}${receipts === '' ? '' : `\n> ${receipts}`}`;
    }
    case 'plan':
      return entry.entries.map((step) => `- [${step.status === 'completed' ? 'x' : ' '}] ${step.content}`).join('\n');
    case 'notice':
    case 'divider':
      return `_${entry.sentence}_`;
    case 'unknown':
      return `_Unknown event ${entry.type}_`;
  }
};

const about = (summary: ConversationSummary): string =>
  `${summary.agentTitle}${summary.agentVersion === null ? '' : ` ${summary.agentVersion}`} in ${summary.workspacePath}, ${new Date(summary.createdAt).toISOString()}`;

const headMarkdown = (summary: ConversationSummary): string => `# ${summary.title}\n\n${about(summary)}\n`;

const blockMarkdown = (block: BlockView): string => {
  const end = block.ended === null ? [] : [`_Turn ended: ${block.ended.stopReason}_`];
  return [...block.entries.map(entryMarkdown), ...end].map((part) => `\n${part}\n`).join('');
};

const inert = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const headHtml = (summary: ConversationSummary): string => {
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  const style =
    'body{font:15px/1.6 system-ui,sans-serif;max-width:760px;margin:32px auto;padding:0 16px;color-scheme:light dark}' +
    'pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}.tool pre,.approval pre{font:13px/1.5 ui-monospace,monospace}' +
    'section{border-top:1px solid #8884;padding:8px 0}';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width"><title>${inert(summary.title)}</title><style>${style}</style></head>
<body><h1>${inert(summary.title)}</h1><p>${inert(about(summary))}</p>
`;
};

const blockHtml = (block: BlockView): string =>
  block.entries
    .map((entry) => `<section class="${entry.kind}"><pre>${inert(entryMarkdown(entry))}</pre></section>\n`)
    .join('');
