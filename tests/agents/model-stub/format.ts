/** What the four wire formats share: one shape in, one stream of frames out, and careful reading of unknown JSON. */
import type { Answer, Asked, Tool } from './script.ts';

/** One model API. Frames are written as they are; a format without `finish` frames for slow text just goes on. */
export interface Format {
  readonly name: string;
  /** True for a request of this API. */
  matches(method: string, path: string): boolean;
  ask(body: Record<string, unknown>): Asked;
  /** Whether the answer is a stream of frames; otherwise one JSON document. */
  isStream(path: string, body: Record<string, unknown>): boolean;
  document(answer: Spoken, body: Record<string, unknown>): unknown;
  /** Frames before the first word, for one word, and after the last. */
  open(body: Record<string, unknown>): string;
  word(word: string): string;
  close(answer: Spoken): string;
}
export type Spoken = Extract<Answer, { kind: 'text' | 'tool' }>;

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const recordOf = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {});
export const recordsOf = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isRecord) : [];
export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Text of a string, of parts with `text`, or of nested content. */
export const textOf = (value: unknown): string => {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(textOf).join('\n');
  if (isRecord(value)) return textOf(value['text'] ?? value['output'] ?? value['content'] ?? '');
  return '';
};

/** A tool by its JSON Schema. */
export const toolOf = (name: string, schema: unknown): Tool => {
  const { properties, required } = recordOf(schema);
  const parameters = Object.entries(recordOf(properties)).map(([each, about]) => [
    each,
    stringOf(recordOf(about)['type']).toLowerCase(),
  ]);
  return {
    name,
    parameters: Object.fromEntries(parameters) as Record<string, string>,
    required: Array.isArray(required) ? required.filter((each) => typeof each === 'string') : [],
  };
};

export const membersOf = (schema: unknown): string[] => Object.keys(recordOf(recordOf(schema)['properties']));

export const dataFrame = (value: unknown, end = '\n\n'): string => `data: ${JSON.stringify(value)}${end}`;
export const eventFrame = (type: string, value: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`;
