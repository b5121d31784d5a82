/**
 * Keeps an event small: a text above the inline bound moves to a blob in the field its schema declares for it. The
 * text field keeps the head, the blob reference head and tail. Pure: the blobs to be stored are handed back.
 * Called by tx.ts for every append.
 */
import { createHash } from 'node:crypto';
import type { BlobRef, EventType } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';

type Fields = Record<string, unknown>;
interface Slot {
  readonly holder: Fields;
  readonly text: string;
  readonly blob: string;
  readonly mime: string;
}
export interface MovedBlob {
  readonly bytes: Uint8Array;
  readonly ref: BlobRef;
}

const plain = 'text/plain';
const json = 'application/json';

/** Each pass keeps less inline; most events need none, a call with hundreds of large results needs the last. */
const passes = [
  { bytes: limits.inlineTextBytes, units: limits.inlineHeadUnits },
  { bytes: limits.inlineTextBytes / 4, units: limits.inlineHeadUnits / 4 },
  { bytes: limits.inlineTextBytes / 16, units: limits.inlineHeadUnits / 16 },
  { bytes: limits.inlineTextBytes / 128, units: limits.inlineHeadUnits / 128 },
] as const;

const objects = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.filter((item): item is Fields => typeof item === 'object' && item !== null) : [];

const changeSlots = (holder: Fields): Slot[] => [
  { holder, text: 'oldText', blob: 'oldBlob', mime: plain },
  { holder, text: 'newText', blob: 'newBlob', mime: plain },
];
const contentSlots = (holder: Fields): Slot[] => {
  if (holder['type'] === 'diff') return changeSlots(holder);
  return [{ holder, text: holder['type'] === 'terminal' ? 'output' : 'text', blob: 'blob', mime: plain }];
};
const rawSlots = (holder: Fields): Slot[] => [
  { holder, text: 'rawInput', blob: 'rawInputBlob', mime: json },
  { holder, text: 'rawOutput', blob: 'rawOutputBlob', mime: json },
];

const slotsOf = (type: EventType, data: Fields): Slot[] => {
  if (type === 'message' || type === 'queue.added') return [{ holder: data, text: 'text', blob: 'blob', mime: plain }];
  if (type === 'tool.called' || type === 'tool.updated') {
    return [...rawSlots(data), ...objects(data['content']).flatMap(contentSlots)];
  }
  if (type === 'approval.requested') {
    const facts = data['facts'] as Fields;
    return [...rawSlots(facts), ...objects(facts['diffs']).flatMap(changeSlots)];
  }
  return [];
};

/** Cuts without leaving half a surrogate pair behind. */
const head = (text: string, units: number): string => {
  const last = text.charCodeAt(units - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? units - 1 : units);
};
const tail = (text: string, units: number): string => {
  const start = text.length - units;
  const first = text.charCodeAt(start);
  return text.slice(first >= 0xdc00 && first <= 0xdfff ? start + 1 : start);
};

const moved = (text: string, mime: string, units: number): MovedBlob => {
  const bytes = Buffer.from(text, 'utf8');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { bytes, ref: { sha256, bytes: bytes.length, mime, head: head(text, units), tail: tail(text, units) } };
};

/** Same data with what is above `pass` moved. */
const movePass = (
  type: EventType,
  data: unknown,
  pass: (typeof passes)[number],
): { data: Fields; blobs: MovedBlob[] } => {
  const copy = structuredClone(data) as Fields;
  const blobs: MovedBlob[] = [];
  for (const slot of slotsOf(type, copy)) {
    const text = slot.holder[slot.text];
    if (typeof text !== 'string' || slot.holder[slot.blob] !== undefined || Buffer.byteLength(text) <= pass.bytes)
      continue;
    const blob = moved(text, slot.mime, pass.units);
    slot.holder[slot.text] = blob.ref.head;
    slot.holder[slot.blob] = blob.ref;
    blobs.push(blob);
  }
  return { data: copy, blobs };
};

/**
 * The data as it will be stored, the blobs that go with it, and the JSON text made by `encode`.
 * Null when it is above limits.eventBytes even with everything moved that can be.
 */
export const inlined = (
  type: EventType,
  data: unknown,
  encode: (data: unknown) => string,
): { data: unknown; blobs: MovedBlob[]; body: string; bytes: number } | null => {
  const isLarge = slotsOf(type, data as Fields).some((slot) => {
    const text = slot.holder[slot.text];
    return typeof text === 'string' && Buffer.byteLength(text) > limits.inlineTextBytes;
  });
  if (!isLarge) {
    const body = encode(data);
    const bytes = Buffer.byteLength(body);
    if (bytes <= limits.eventBytes) return { data, blobs: [], body, bytes };
  }
  for (const pass of passes) {
    const tried = movePass(type, data, pass);
    const body = encode(tried.data);
    const bytes = Buffer.byteLength(body);
    if (bytes <= limits.eventBytes) return { ...tried, body, bytes };
  }
  return null;
};
