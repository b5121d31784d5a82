/**
 * The transcript as one flat list for the virtual scroller. Pure; rows of a block are made once per projected view, so a
 * streaming frame costs one concatenation.
 */
import type { ApprovalRow, BlockView, Entry, MessageRow, ToolRow } from '#protocol/view.ts';
import type { BlockSlot, Sending } from '#lib/state/contract.ts';

export type Row =
  /** A block, or its older part, that is not here yet. */
  | { readonly kind: 'gap'; readonly key: string; readonly seq: number; readonly events: number }
  /** `under`: a card of the tool call right above it, which already names what it is about. */
  | {
      readonly kind: 'entry';
      readonly key: string;
      readonly seq: number;
      readonly entry: Exclude<Entry, ToolRow>;
      readonly under: boolean;
    }
  /** Consecutive tool calls. */
  | { readonly kind: 'tools'; readonly key: string; readonly seq: number; readonly tools: readonly ToolRow[] }
  | { readonly kind: 'footer'; readonly key: string; readonly seq: number; readonly block: BlockView }
  | { readonly kind: 'live'; readonly key: string; readonly message: MessageRow }
  | { readonly kind: 'sending'; readonly key: string; readonly sending: Sending }
  | { readonly kind: 'progress'; readonly key: string };

export interface RowSource {
  readonly blocks: readonly BlockSlot[];
  readonly live: MessageRow | null;
  readonly sending: readonly Sending[];
  /** A progress line is due. */
  readonly progress: boolean;
}

const made = new WeakMap<BlockView, readonly Row[]>();

/** The card is about the last of these calls: by its id, or, for an effect the bridge serves itself, by the same name. */
const isAbout = (entry: Entry, above: Row | undefined): boolean => {
  const tool = above?.kind === 'tools' ? above.tools.at(-1) : undefined;
  if (entry.kind !== 'approval' || tool === undefined) return false;
  return tool.approvalIds.includes(entry.approvalId) || tool.title === entry.request.facts.headline;
};

/** Row keys are unique over the whole transcript: an entry's own key is so only in its block. */
const blockRows = (view: BlockView): readonly Row[] => {
  const known = made.get(view);
  if (known !== undefined) return known;
  const rows: Row[] = [];
  const prefix = `${view.firstSeq}/`;
  const first = view.entries[0];
  if (!view.complete)
    rows.push({
      kind: 'gap',
      key: `${prefix}older`,
      seq: Math.max(view.firstSeq, (first?.seq ?? view.firstSeq) - 1),
      events: 40,
    });
  for (const entry of view.entries) {
    const last = rows.at(-1);
    if (entry.kind !== 'tool')
      rows.push({ kind: 'entry', key: prefix + entry.key, seq: entry.seq, entry, under: isAbout(entry, last) });
    else if (last?.kind === 'tools') rows[rows.length - 1] = { ...last, tools: [...last.tools, entry] };
    else rows.push({ kind: 'tools', key: `${prefix}tools/${entry.key}`, seq: entry.seq, tools: [entry] });
  }
  if (view.ended !== null) rows.push({ kind: 'footer', key: `${prefix}footer`, seq: view.lastSeq, block: view });
  made.set(view, rows);
  return rows;
};

export const transcriptRows = (source: RowSource): readonly Row[] => {
  const rows: Row[] = [];
  for (const slot of source.blocks) {
    if (slot.view === null)
      rows.push({ kind: 'gap', key: `${slot.firstSeq}/gap`, seq: slot.firstSeq, events: slot.endSeq - slot.firstSeq });
    else for (const row of blockRows(slot.view)) rows.push(row);
  }
  for (const sending of source.sending) rows.push({ kind: 'sending', key: `sending/${sending.key}`, sending });
  if (source.live !== null) rows.push({ kind: 'live', key: `live/${source.live.key}`, message: source.live });
  if (source.progress) rows.push({ kind: 'progress', key: 'progress' });
  return rows;
};

/** The row that shows event `seq`: the last one that begins at or before it. −1 when it is not loaded. */
export const rowOfSeq = (rows: readonly Row[], seq: number): number => {
  for (let index = rows.length - 1; index >= 0; index -= 1) {
    const row = rows[index];
    if (row === undefined || !('seq' in row) || row.seq > seq) continue;
    return row.kind === 'gap' ? -1 : index;
  }
  return -1;
};

export const approvalOf = (row: Row | undefined): ApprovalRow | null =>
  row?.kind === 'entry' && row.entry.kind === 'approval' ? row.entry : null;

/** Guessed height of a gap, px: near enough that the scroll bar does not lie much. */
export const gapHeight = (events: number): number => Math.min(2400, Math.max(120, events * 22));

/** Of text in the column: units a line, and a line's height with its share of the space between paragraphs, px. */
const [unitsPerLine, lineHeight] = [80, 26] as const;
const guessedHeight = (row: Row): number => {
  const text = row.kind === 'live' ? row.message : row.kind === 'entry' && 'text' in row.entry ? row.entry : null;
  if (text !== null) return 36 + lineHeight * Math.max(1, text.text.length / unitsPerLine);
  if (row.kind === 'tools') return 8 + 34 * Math.min(4, row.tools.length);
  return approvalOf(row) === null ? 48 : 260;
};
/** How high a row near the end usually is, px, before any was measured: the list then draws no more rows than it needs. */
export const typicalHeight = (rows: readonly Row[]): number => {
  const known = rows.slice(-40).filter((row) => row.kind !== 'gap');
  const sum = known.reduce((total, row) => total + guessedHeight(row), 0);
  return known.length === 0 ? 60 : Math.round(Math.min(4000, Math.max(40, sum / known.length)));
};

/** Words of a row for a copy that reaches over rows that are not drawn. */
export const rowText = (row: Row): string => {
  if (row.kind === 'live') return row.message.text;
  if (row.kind === 'sending') return row.sending.text;
  if (row.kind === 'tools') return row.tools.map((tool) => tool.title).join('\n');
  if (row.kind !== 'entry') return '';
  const { entry } = row;
  if (entry.kind === 'message') return entry.text;
  if (entry.kind === 'approval') return entry.request.facts.headline;
  if (entry.kind === 'plan') return entry.entries.map((step) => step.content).join('\n');
  return entry.kind === 'unknown' ? entry.type : entry.sentence;
};
