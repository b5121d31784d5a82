import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { knownEvent, type AnyEvent } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import { textAt } from '../../bridge/agents/jsontext.ts';
import { LineReader } from '../../bridge/agents/lines.ts';
import { redact, Ring } from '../../bridge/agents/ring.ts';
import { Translation } from '../../bridge/agents/translate.ts';
import type { AgentItem } from '../../bridge/agents/contract.ts';

/** As a frame would come: the update is parsed, the text of its members is the text given. */
const translate = (translation: Translation, update: string): AgentItem[] =>
  translation.update(JSON.parse(update), (...path) => textAt(update, path));
const once = (update: string): AgentItem[] => translate(new Translation(), update);
const storable = (item: AgentItem): boolean => {
  if (item.type !== 'tool.called' && item.type !== 'tool.updated') return true;
  const event = {
    id: '0190a5d4-0000-7000-8000-000000000000',
    conversationId: 'c',
    seq: 1,
    at: 1,
    type: item.type,
    data: item.call,
  } as unknown as AnyEvent;
  return knownEvent(event) !== null;
};

describe('translation of updates (G-02)', () => {
  it('merges a tool call over its updates and gives only what changed', () => {
    const translation = new Translation();
    expect(
      translate(translation, '{"sessionUpdate":"tool_call","toolCallId":"a","title":"Preparing","rawInput":{}}'),
    ).toEqual([
      { type: 'tool.called', call: { toolCallId: 'a', title: 'Preparing', status: 'pending', rawInput: '{}' } },
    ]);
    const update =
      '{"sessionUpdate":"tool_call_update","toolCallId":"a","rawInput":{"n":1.0},"kind":"edit","locations":[{"path":"/x","line":3},{"path":7}],"content":[{"type":"diff","path":"/x","oldText":null,"newText":"hi"}]}';
    expect(translate(translation, update)).toEqual([
      {
        type: 'tool.updated',
        call: {
          toolCallId: 'a',
          kind: 'edit',
          rawInput: '{"n":1.0}',
          locations: [{ path: '/x', line: 3 }],
          content: [{ type: 'diff', path: '/x', oldText: null, newText: 'hi' }],
        },
      },
    ]);
    const asked = translation.permission({ toolCallId: 'a', title: null }, () => undefined);
    expect(asked).toMatchObject({
      announced: true,
      call: { title: 'Preparing', kind: 'edit', rawInput: '{"n":1.0}', status: 'pending' },
    });
  });

  it('accepts an update and a permission for a call that was never announced', () => {
    expect(once('{"sessionUpdate":"tool_call_update","toolCallId":"u","status":"completed"}')).toEqual([
      { type: 'tool.called', call: { toolCallId: 'u', status: 'completed' } },
    ]);
    const translation = new Translation();
    expect(translation.permission({ toolCallId: 'p' }, () => undefined)).toMatchObject({
      announced: false,
      items: [{ type: 'tool.called' }],
    });
    expect(
      translate(translation, '{"sessionUpdate":"tool_call_update","toolCallId":"p","status":"failed"}'),
    ).toMatchObject([{ type: 'tool.updated' }]);
  });

  it.each([
    ['a tool call without title', '{"sessionUpdate":"tool_call","toolCallId":"a"}'],
    ['a numeric kind', '{"sessionUpdate":"tool_call","toolCallId":"a","title":"t","kind":3}'],
    ['content that is no list', '{"sessionUpdate":"tool_call","toolCallId":"a","title":"t","content":"x"}'],
    ['an empty id', '{"sessionUpdate":"tool_call","toolCallId":"","title":"t"}'],
    ['text without text', '{"sessionUpdate":"agent_message_chunk","content":{"type":"text"}}'],
    ['no content', '{"sessionUpdate":"agent_message_chunk"}'],
    ['plan entries that are null', '{"sessionUpdate":"plan","entries":null}'],
    ['usage that is text', '{"sessionUpdate":"usage_update","used":"many"}'],
    ['no kind at all', '{"hello":1}'],
    ['null', 'null'],
  ])('makes %s one unreadable event (case 9)', (_what, update) => {
    expect(once(update)).toMatchObject([{ type: 'notice', code: 'unreadable_event', level: 'warn' }]);
  });

  it('keeps unknown kinds and content as they came', () => {
    expect(
      once(
        '{"sessionUpdate":"tool_call","toolCallId":"a","title":"t","kind":"dream","status":"asleep","content":[{"type":"hologram","z":1}]}',
      ),
    ).toEqual([
      {
        type: 'tool.called',
        call: {
          toolCallId: 'a',
          title: 't',
          kind: 'other',
          status: 'pending',
          content: [{ type: 'text', text: '{"type":"hologram","z":1}' }],
        },
      },
    ]);
  });

  it('bounds how often an unknown kind of update is shown', () => {
    const translation = new Translation();
    const items = Array.from({ length: 1000 }, () => translate(translation, '{"sessionUpdate":"chatter"}')).flat();
    expect(items).toHaveLength(limits.unknownUpdates);
  });

  it('shows output of the terminals agents run themselves, without sending it anew for each piece', () => {
    const translation = new Translation();
    translate(
      translation,
      '{"sessionUpdate":"tool_call","toolCallId":"t","title":"ls","content":[{"type":"terminal","terminalId":"t"}]}',
    );
    const pieces = Array.from({ length: 1000 }, () =>
      translate(
        translation,
        '{"sessionUpdate":"tool_call_update","toolCallId":"t","_meta":{"terminal_output_delta":{"data":"line\\n"}}}',
      ),
    );
    expect(pieces.flat().length).toBeLessThan(5);
    const end = translate(
      translation,
      '{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","_meta":{"terminal_exit":{"exit_code":0,"signal":null}}}',
    );
    expect(end).toMatchObject([
      {
        type: 'tool.updated',
        call: {
          status: 'completed',
          content: [{ type: 'terminal', terminalId: 't', output: 'line\n'.repeat(1000), exitCode: 0 }],
        },
      },
    ]);
    expect(end.every(storable)).toBe(true);
  });

  it('gives an id longer than the log takes the same shorter one each time', () => {
    const translation = new Translation();
    const id = 'x'.repeat(500);
    const [called] = translate(translation, `{"sessionUpdate":"tool_call","toolCallId":"${id}","title":"t"}`);
    const [updated] = translate(
      translation,
      `{"sessionUpdate":"tool_call_update","toolCallId":"${id}","status":"completed"}`,
    );
    expect([called, updated]).toMatchObject([
      { type: 'tool.called' },
      { type: 'tool.updated', call: { toolCallId: called?.type === 'tool.called' ? called.call.toolCallId : '' } },
    ]);
    expect([called, updated].every((item) => item !== undefined && storable(item))).toBe(true);
  });

  it('never throws, whatever an update holds', () => {
    const kinds = [
      'tool_call',
      'tool_call_update',
      'plan',
      'usage_update',
      'agent_message_chunk',
      'config_option_update',
      'available_commands_update',
      'session_info_update',
      'current_mode_update',
    ];
    const members = [
      'toolCallId',
      'title',
      'kind',
      'status',
      'content',
      'locations',
      'rawInput',
      'entries',
      'used',
      'cost',
      'configOptions',
      'availableCommands',
      '_meta',
      'currentModeId',
    ];
    const update = fc.tuple(fc.constantFrom(...kinds), fc.dictionary(fc.constantFrom(...members), fc.jsonValue()));
    fc.assert(
      fc.property(fc.array(update, { maxLength: 5 }), (updates) => {
        const translation = new Translation();
        for (const [sessionUpdate, rest] of updates) translate(translation, JSON.stringify({ ...rest, sessionUpdate }));
      }),
      { numRuns: 300 },
    );
  });
});

describe('exact text inside a frame', () => {
  it('gives back what JSON.parse would have changed', () => {
    const json =
      '{ "params" : {"toolCall":{"raw\\u0049nput":{ "a": 1e400, "b":0.10, "c":12345678901234567890 , "d":"\\u0041\\"}]" },"x":[1,{"y":"}"}]}} }';
    expect(textAt(json, ['params', 'toolCall', 'rawInput'])).toBe(
      '{ "a": 1e400, "b":0.10, "c":12345678901234567890 , "d":"\\u0041\\"}]" }',
    );
    expect(textAt(json, ['params', 'toolCall', 'x'])).toBe('[1,{"y":"}"}]');
    expect(textAt(json, ['params', 'nothing'])).toBeUndefined();
    expect(textAt('{"a":1,"a":2}', ['a'])).toBe('2');
  });

  it('agrees with JSON.parse on every document', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(undefined, 1, '\t'),
        (document, indent) => {
          const json = JSON.stringify(document, null, indent);
          for (const [name, value] of Object.entries(JSON.parse(json) as Record<string, unknown>))
            expect(JSON.parse(textAt(json, [name]) ?? 'null')).toEqual(value);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('lines of an agent (L-33)', () => {
  const read = (chunks: readonly Uint8Array[], maxBytes = 100) => {
    const seen: string[] = [];
    const reader = new LineReader(
      { line: (text) => seen.push(text), dropped: (why, head) => seen.push(`${why}: ${head}`) },
      maxBytes,
    );
    for (const chunk of chunks) reader.push(chunk);
    reader.end();
    return seen;
  };

  it('are the same however the bytes are cut', () => {
    const bytes = Buffer.from('{"ä":"€𝄞"}\r\n\n  \n{"b":2}\nlast');
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: bytes.length - 1 })), (cuts) => {
        const at = [0, ...[...new Set(cuts)].sort((a, b) => a - b), bytes.length];
        expect(read(at.slice(1).map((end, index) => bytes.subarray(at[index], end)))).toEqual([
          '{"ä":"€𝄞"}\r',
          '{"b":2}',
          'last',
        ]);
      }),
    );
  });

  it('of a gigabyte are passed over without being kept', () => {
    const block = Buffer.alloc(1_000_000, 'x');
    const seen: string[] = [];
    const reader = new LineReader(
      { line: (text) => seen.push(text), dropped: (why) => seen.push(why) },
      limits.agentLineBytes,
    );
    for (let index = 0; index < 1000; index += 1) reader.push(block);
    reader.push(Buffer.from('\n{}\n'));
    expect(seen).toEqual(['too_long', '{}']);
  });

  it('that are not UTF-8 are dropped', () => {
    expect(read([Buffer.from([0x7b, 0xff, 0x0a, 0x7b, 0x7d, 0x0a])])).toEqual(['not_utf8: {\ufffd', '{}']);
  });
});

describe('what is kept of stderr and frames', () => {
  it('is the newest, within its bound', () => {
    const ring = new Ring(10);
    for (const text of ['aaaa', 'bbbb', 'cccc']) ring.push(text);
    expect(ring.text()).toBe('bbbbcccc');
    ring.push('x'.repeat(50));
    expect(ring.text()).toBe('x'.repeat(10));
  });

  it.each([
    'sk-ant-abcdefghijklmnop',
    'ghp_abcdefghijklmnopqrst',
    'Authorization: Bearer abc.def-ghijklmn',
    '"api_key": "abcdefgh12345"',
    'eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc',
  ])('hides %s', (text) => {
    expect(redact(`before ${text} after`, [])).toMatch(/^before .*\[redacted\].* after$/);
    expect(redact(text, [])).not.toMatch(/abcdefgh|ghijklmn|eyJhbGciOi/);
  });
});
