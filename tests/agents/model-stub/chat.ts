/** OpenAI chat completions. */
import {
  dataFrame,
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

const head = { id: 'chatcmpl-stub', created: 1_700_000_000, model: 'mock-model' };
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const chunk = (delta: object, finish: string | null = null): string =>
  dataFrame({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] });
const reasonOf = (answer: Spoken): string => (answer.kind === 'tool' ? 'tool_calls' : 'stop');

const ask = (body: Record<string, unknown>): Asked => {
  const format = recordOf(body['response_format']);
  const items = recordsOf(body['messages']).flatMap(({ role, content }): Asked['items'][number][] => {
    if (role === 'tool') return [{ role, text: textOf(content) }];
    if (role === 'assistant') return [{ role, text: textOf(content) }];
    return role === 'user' ? [{ role, text: textOf(content) }] : [];
  });
  const tools = recordsOf(body['tools']).map((each) =>
    toolOf(stringOf(recordOf(each['function'])['name']), recordOf(each['function'])['parameters']),
  );
  const schema = recordOf(format['json_schema'])['schema'];
  return {
    items,
    tools,
    json: format['type'] === 'json_schema' || format['type'] === 'json_object' ? membersOf(schema) : null,
  };
};

const toolCall = (answer: Spoken): object[] =>
  answer.kind === 'tool'
    ? [{ id: answer.id, type: 'function', function: { name: answer.name, arguments: JSON.stringify(answer.input) } }]
    : [];

const close = (answer: Spoken): string => {
  const call =
    answer.kind === 'tool'
      ? [
          chunk({
            tool_calls: [{ index: 0, id: answer.id, type: 'function', function: { name: answer.name, arguments: '' } }],
          }),
          chunk({ tool_calls: [{ index: 0, function: { arguments: JSON.stringify(answer.input) } }] }),
        ]
      : [];
  const usageChunk = dataFrame({ ...head, object: 'chat.completion.chunk', choices: [], usage });
  return [...call, chunk({}, reasonOf(answer)), usageChunk, 'data: [DONE]\n\n'].join('');
};

export const chat: Format = {
  name: 'chat',
  matches: (method, path) => method === 'POST' && path === '/v1/chat/completions',
  ask,
  isStream: (_, body) => body['stream'] === true,
  document: (answer) => ({
    ...head,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: answer.text,
          tool_calls: answer.kind === 'tool' ? toolCall(answer) : undefined,
        },
        finish_reason: reasonOf(answer),
      },
    ],
    usage,
  }),
  open: () => chunk({ role: 'assistant', content: '' }),
  word: (word) => chunk({ content: word }),
  close,
};
