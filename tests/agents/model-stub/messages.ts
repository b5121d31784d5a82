/** Anthropic Messages. */
import {
  eventFrame,
  membersOf,
  recordOf,
  recordsOf,
  stringOf,
  textOf,
  toolOf,
  type Format,
  type Spoken,
} from './format.ts';
import type { Asked } from './script.ts';

const head = { id: 'msg_stub', type: 'message', role: 'assistant' };
const modelOf = (body: Record<string, unknown>): string => stringOf(body['model']) || 'mock-model';
const reasonOf = (answer: Spoken): string => (answer.kind === 'tool' ? 'tool_use' : 'end_turn');

/** Block by block: a prompt after a cancelled tool comes in one user message behind the tool's result. */
const ask = (body: Record<string, unknown>): Asked => {
  const items = recordsOf(body['messages']).flatMap(({ role, content }): Asked['items'][number][] => {
    if (role !== 'user' && role !== 'assistant') return [];
    if (typeof content === 'string') return [{ role, text: content }];
    return recordsOf(content).map((block) =>
      block['type'] === 'tool_result'
        ? { role: 'tool', text: textOf(block['content']) }
        : { role, text: textOf(block['text']) },
    );
  });
  const tools = recordsOf(body['tools']).map((each) => toolOf(stringOf(each['name']), each['input_schema']));
  const format = recordOf(recordOf(body['output_config'])['format']);
  return { items, tools, json: 'schema' in format ? membersOf(format['schema']) : null };
};

const close = (answer: Spoken): string => {
  const call =
    answer.kind === 'tool'
      ? [
          eventFrame('content_block_start', {
            index: 1,
            content_block: { type: 'tool_use', id: answer.id, name: answer.name, input: {} },
          }),
          eventFrame('content_block_delta', {
            index: 1,
            delta: { type: 'input_json_delta', partial_json: JSON.stringify(answer.input) },
          }),
          eventFrame('content_block_stop', { index: 1 }),
        ]
      : [];
  return [
    eventFrame('content_block_stop', { index: 0 }),
    ...call,
    eventFrame('message_delta', {
      delta: { stop_reason: reasonOf(answer), stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    eventFrame('message_stop', {}),
  ].join('');
};

export const messages: Format = {
  name: 'messages',
  matches: (method, path) => method === 'POST' && path === '/v1/messages',
  ask,
  isStream: (_, body) => body['stream'] === true,
  document: (answer, body) => ({
    ...head,
    model: modelOf(body),
    content: [
      { type: 'text', text: answer.text },
      ...(answer.kind === 'tool' ? [{ type: 'tool_use', id: answer.id, name: answer.name, input: answer.input }] : []),
    ],
    stop_reason: reasonOf(answer),
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
  }),
  open: (body) =>
    eventFrame('message_start', {
      message: {
        ...head,
        model: modelOf(body),
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 10, output_tokens: 1 },
      },
    }) + eventFrame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  word: (word) => eventFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text: word } }),
  close,
};
