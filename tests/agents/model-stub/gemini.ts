/** Gemini: streamGenerateContent, and generateContent for its router. */
import { dataFrame, membersOf, recordOf, recordsOf, stringOf, toolOf, type Format, type Spoken } from './format.ts';
import type { Asked } from './script.ts';

const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 };
const candidate = (parts: unknown[], finishReason?: string): unknown => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...(finishReason !== undefined && { finishReason }) }],
  usageMetadata,
});
const partsOf = (answer: Spoken): unknown[] =>
  answer.kind === 'tool' ? [{ functionCall: { id: answer.id, name: answer.name, args: answer.input } }] : [];
// Gemini's streams end their frames with CRLF.
const frame = (value: unknown): string => dataFrame(value, '\r\n\r\n');

const ask = (body: Record<string, unknown>): Asked => {
  const config = recordOf(body['generationConfig']);
  const schema = config['responseJsonSchema'] ?? config['responseSchema'];
  const items = recordsOf(body['contents']).flatMap(({ role, parts }) =>
    recordsOf(parts).map((part): Asked['items'][number] => {
      if ('functionResponse' in part)
        return { role: 'tool', text: JSON.stringify(recordOf(part['functionResponse'])['response'] ?? '') };
      return { role: role === 'model' ? 'assistant' : 'user', text: stringOf(part['text']) };
    }),
  );
  const declared = recordsOf(body['tools']).flatMap(({ functionDeclarations }) => recordsOf(functionDeclarations));
  const tools = declared.map((each) =>
    toolOf(stringOf(each['name']), each['parametersJsonSchema'] ?? each['parameters']),
  );
  return { items, tools, json: config['responseMimeType'] === 'application/json' ? membersOf(schema) : null };
};

export const gemini: Format = {
  name: 'gemini',
  matches: (method, path) => method === 'POST' && /^\/v1(beta)?\/models\/[^/]+:(stream)?generateContent$/i.test(path),
  ask,
  isStream: (path) => path.includes(':streamGenerateContent'),
  document: (answer) => candidate([{ text: answer.text }, ...partsOf(answer)], 'STOP'),
  open: () => '',
  word: (word) => frame(candidate([{ text: word }])),
  close: (answer) => frame(candidate(answer.kind === 'tool' ? partsOf(answer) : [{ text: '' }], 'STOP')),
};
