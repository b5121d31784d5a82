/** OpenAI Responses. */
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

const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
const response = (status: string, output: unknown[]): object => ({
  id: 'resp_stub',
  object: 'response',
  created_at: 1_700_000_000,
  model: 'mock-model',
  status,
  output,
  usage: status === 'completed' ? usage : null,
});
const message = (text: string, status: string): object => ({
  id: 'msg_stub',
  type: 'message',
  role: 'assistant',
  status,
  content: [{ type: 'output_text', text, annotations: [] }],
});

const ask = (body: Record<string, unknown>): Asked => {
  const format = recordOf(recordOf(body['text'])['format']);
  const input =
    typeof body['input'] === 'string' ? [{ role: 'user', content: body['input'] }] : recordsOf(body['input']);
  const items = input.flatMap((item): Asked['items'][number][] => {
    const type = stringOf(item['type']);
    if (type.endsWith('_call_output')) return [{ role: 'tool', text: textOf(item['output']) }];
    if (item['role'] === 'user' || item['role'] === 'assistant')
      return [{ role: item['role'], text: textOf(item['content']) }];
    return type.endsWith('_call') ? [{ role: 'assistant', text: '' }] : [];
  });
  const tools = recordsOf(body['tools']).map((each) => toolOf(stringOf(each['name']), each['parameters']));
  return { items, tools, json: format['type'] === 'json_schema' ? membersOf(format['schema']) : null };
};

const callItem = (answer: Spoken): { item: Record<string, unknown>; type: string; text: string } | null => {
  if (answer.kind !== 'tool') return null;
  const base = { id: `item_${answer.id}`, call_id: answer.id, name: answer.name, status: 'completed' };
  // A free-form tool takes its input as plain text.
  if (answer.name === 'apply_patch')
    return {
      item: { ...base, type: 'custom_tool_call', input: answer.input['input'] },
      type: 'custom_tool_call_input',
      text: stringOf(answer.input['input']),
    };
  const text = JSON.stringify(answer.input);
  return { item: { ...base, type: 'function_call', arguments: text }, type: 'function_call_arguments', text };
};

const close = (answer: Spoken): string => {
  const call = callItem(answer);
  const done = message(answer.text, 'completed');
  const place = { item_id: 'msg_stub', output_index: 0, content_index: 0 };
  const output = call === null ? [done] : [done, call.item];
  const frames = [
    eventFrame('response.output_text.done', { ...place, text: answer.text }),
    eventFrame('response.content_part.done', {
      ...place,
      part: { type: 'output_text', text: answer.text, annotations: [] },
    }),
    eventFrame('response.output_item.done', { output_index: 0, item: done }),
  ];
  if (call !== null) {
    const at = { item_id: call.item['id'], output_index: 1 };
    const empty = call.type === 'function_call_arguments' ? { arguments: '' } : { input: '' };
    const full = call.type === 'function_call_arguments' ? { arguments: call.text } : { input: call.text };
    frames.push(
      eventFrame('response.output_item.added', {
        output_index: 1,
        item: { ...call.item, ...empty, status: 'in_progress' },
      }),
      eventFrame(`response.${call.type}.delta`, { ...at, delta: call.text }),
      eventFrame(`response.${call.type}.done`, { ...at, ...full }),
      eventFrame('response.output_item.done', { output_index: 1, item: call.item }),
    );
  }
  return [...frames, eventFrame('response.completed', { response: response('completed', output) })].join('');
};

const open = (): string =>
  [
    eventFrame('response.created', { response: response('in_progress', []) }),
    eventFrame('response.in_progress', { response: response('in_progress', []) }),
    eventFrame('response.output_item.added', { output_index: 0, item: { ...message('', 'in_progress'), content: [] } }),
    eventFrame('response.content_part.added', {
      item_id: 'msg_stub',
      output_index: 0,
      content_index: 0,
      part: { type: 'output_text', text: '', annotations: [] },
    }),
  ].join('');

export const responses: Format = {
  name: 'responses',
  matches: (method, path) => method === 'POST' && path === '/v1/responses',
  ask,
  isStream: (_, body) => body['stream'] === true,
  document: (answer) => {
    const call = callItem(answer);
    return response(
      'completed',
      call === null ? [message(answer.text, 'completed')] : [message(answer.text, 'completed'), call.item],
    );
  },
  open,
  word: (word) =>
    eventFrame('response.output_text.delta', { item_id: 'msg_stub', output_index: 0, content_index: 0, delta: word }),
  close,
};
