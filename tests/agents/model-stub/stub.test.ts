import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decide, directivesIn, words, type Asked } from './script.ts';
import { startModelStub, type ModelStub } from './server.ts';

let stub: ModelStub;
beforeEach(async () => {
  stub = await startModelStub();
});
afterEach(() => stub.close());

const post = (path: string, body: unknown): Promise<Response> =>
  fetch(stub.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
/** The JSON of every `data:` line of a stream. */
const frames = async (path: string, body: unknown): Promise<Record<string, never>[]> => {
  const text = await (await post(path, body)).text();
  return text
    .split(/\r?\n/)
    .filter((line) => /^data: \{/.test(line))
    .map((line) => JSON.parse(line.slice(6)) as Record<string, never>);
};
const properties = {
  path: { type: 'string' },
  content: { type: 'string' },
  command: { type: 'string' },
  file_path: { type: 'string' },
};
const schema = (...names: (keyof typeof properties)[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, properties[name]])),
  required: names,
});

/** How each API is asked for the same: a prompt, and then the same with one tool result. */
const gemini = (text: string, result?: string) => ({
  contents: [
    { role: 'user', parts: [{ text }] },
    ...(result === undefined
      ? []
      : [
          { role: 'model', parts: [{ functionCall: { name: 'write_file', args: {} } }] },
          { role: 'user', parts: [{ functionResponse: { name: 'write_file', response: { output: result } } }] },
        ]),
  ],
  tools: [{ functionDeclarations: [{ name: 'write_file', parametersJsonSchema: schema('file_path', 'content') }] }],
});
const chat = (text: string, result?: string) => ({
  stream: true,
  messages: [
    { role: 'user', content: text },
    ...(result === undefined
      ? []
      : [
          { role: 'assistant', content: '', tool_calls: [{}] },
          { role: 'tool', content: result },
        ]),
  ],
  tools: [{ type: 'function', function: { name: 'Write', parameters: schema('path', 'content') } }],
});
const responses = (text: string, result?: string) => ({
  stream: true,
  input: [
    { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
    ...(result === undefined
      ? []
      : [
          { type: 'custom_tool_call', call_id: 'c' },
          { type: 'custom_tool_call_output', call_id: 'c', output: result },
        ]),
  ],
  tools: [
    { type: 'custom', name: 'apply_patch' },
    {
      type: 'function',
      name: 'exec_command',
      parameters: { properties: { cmd: { type: 'string' } }, required: ['cmd'] },
    },
  ],
});
const messages = (text: string, result?: string) => ({
  stream: true,
  messages: [
    { role: 'user', content: [{ type: 'text', text }] },
    ...(result === undefined
      ? []
      : [
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'Write', input: {} }] },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: result }] }],
          },
        ]),
  ],
  tools: [{ name: 'Write', input_schema: schema('file_path', 'content') }],
});
const apis = {
  gemini: {
    path: '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
    body: gemini,
    call: '"functionCall":{"id":"call_1_0","name":"write_file","args":{"file_path":"a.txt","content":"hi there"}}',
  },
  chat: {
    path: '/v1/chat/completions',
    body: chat,
    call: JSON.stringify({ index: 0, function: { arguments: '{"path":"a.txt","content":"hi there"}' } }),
  },
  responses: {
    path: '/v1/responses',
    body: responses,
    call: '"input":"*** Begin Patch\\n*** Add File: a.txt\\n+hi there\\n*** End Patch\\n"',
  },
  messages: {
    path: '/v1/messages?beta=true',
    body: messages,
    call: JSON.stringify({ type: 'input_json_delta', partial_json: '{"file_path":"a.txt","content":"hi there"}' }),
  },
};

describe.each(Object.entries(apis))('%s', (_, { path, body, call }) => {
  test('streams a text in words', async () => {
    const got = await frames(path, body('[[say one two three]]'));
    expect(got.filter((frame) => /"(one |two |three)"/.test(JSON.stringify(frame))).length).toBe(3);
  });

  test('calls the write tool it was offered, by that tool’s parameter names', async () => {
    expect(JSON.stringify(await frames(path, body('please [[write a.txt hi there]]')))).toContain(call);
  });

  test('answers in text once the tool has a result', async () => {
    const got = JSON.stringify(await frames(path, body('[[write a.txt hi]]', 'user said no')));
    expect(got.replaceAll(/[^a-z ]/g, '')).toContain('said');
    expect(got).not.toContain('a.txt');
    expect(stub.seen.at(-1)?.answer).toMatchObject({
      kind: 'text',
      text: expect.stringContaining('user said no') as string,
    });
  });

  test('fails as it is told', async () => {
    expect((await post(path, body('[[err 503]]'))).status).toBe(503);
  });

  test('speaks without end until the agent hangs up', async () => {
    const hungUp = new Promise<number>((resolve, reject) => {
      let frameCount = 0;
      const asking = request(stub.url + path, { method: 'POST' }, (response) => {
        response.on('data', () => {
          frameCount += 1;
          if (frameCount === 4) response.destroy();
        });
        response.on('close', () => resolve(frameCount));
        response.on('error', reject);
      });
      asking.end(JSON.stringify(body('[[slow]]')));
    });
    expect(await hungUp).toBe(4);
  });
});

describe('what the stub decides', () => {
  const tool = (name: string, ...names: string[]) => ({
    name,
    parameters: Object.fromEntries(names.map((each) => [each, 'string'])),
    required: names,
  });
  const asked = (
    items: Asked['items'],
    tools = [tool('Bash', 'command'), tool('Write', 'path', 'content')],
  ): Asked => ({ items, tools, json: null });
  const user = (text: string) => ({ role: 'user' as const, text });

  test('one directive after the other, each after the result of the one before', () => {
    const prompt = user('[[shell ls -l]] then [[write a b\\nc]]');
    const call = { role: 'assistant' as const, text: '' };
    const result = { role: 'tool' as const, text: 'ok' };
    expect(decide(asked([prompt]))).toMatchObject({ kind: 'tool', name: 'Bash', input: { command: 'ls -l' } });
    expect(decide(asked([prompt, call, result]))).toMatchObject({
      kind: 'tool',
      name: 'Write',
      input: { path: 'a', content: 'b\nc' },
    });
    expect(decide(asked([prompt, call, result, call, result]))).toMatchObject({ kind: 'text' });
  });

  test('the last prompt alone: neither what was asked before nor a reminder of the agent counts', () => {
    const old = [user('[[shell old]]'), { role: 'assistant' as const, text: 'done' }];
    expect(decide(asked([...old, user('[[say new]]')]))).toEqual({ kind: 'text', text: 'new' });
    expect(decide(asked([user('[[shell now]]'), user('<system-reminder>[[say no]]</system-reminder>')]))).toMatchObject(
      { name: 'Bash' },
    );
    // A turn that was interrupted before its first word leaves two prompts in a row.
    expect(decide(asked([user('[[slow]]'), user('[[say again]]')]))).toEqual({ kind: 'text', text: 'again' });
    expect(decide(asked([user('[[slow]]\n\n[[say again]]')]))).toEqual({ kind: 'text', text: 'again' });
  });

  test('a side call without tools gets a title, and one that wants JSON gets its members', () => {
    expect(decide(asked([user('[[slow]] [[write a b]]')], []))).toEqual({ kind: 'text', text: 'A title' });
    expect(decide({ ...asked([user('[[err 500]]')]), json: ['title'] })).toEqual({
      kind: 'text',
      text: '{"title":"stub"}',
    });
  });

  test('says so when it has no tool for a directive', () => {
    expect(decide(asked([user('[[shell ls]]')], [tool('Read', 'path')]))).toMatchObject({
      kind: 'text',
      text: expect.stringContaining('No tool') as string,
    });
  });

  test('text is cut in words and none is lost', () => {
    expect(words(' a  b\nc ').join('')).toBe('a  b\nc ');
    expect(directivesIn('no [directive] here')).toEqual([]);
  });
});
