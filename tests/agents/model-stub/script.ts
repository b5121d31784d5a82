/**
 * What the stub answers, decided from the conversation alone: directives in the last prompt, one after the other, each
 * tool directive answered by one tool result before the next. The same for every wire format. Pure.
 *
 *   [[say some text]]  [[write path content]]  [[shell command]]  [[slow]]  [[err 500]]
 */

/** A conversation in one shape for all formats, in order. */
export interface Asked {
  readonly items: readonly { readonly role: 'user' | 'assistant' | 'tool'; readonly text: string }[];
  readonly tools: readonly Tool[];
  /** A side call that wants JSON, with the names of the members it asks for. */
  readonly json: readonly string[] | null;
}
export interface Tool {
  readonly name: string;
  /** Names of its parameters with their JSON types; empty for a free-form tool. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly required: readonly string[];
}

export type Answer =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'tool';
      readonly text: string;
      readonly id: string;
      readonly name: string;
      readonly input: Readonly<Record<string, unknown>>;
    }
  /** Words without end, until the agent hangs up. */
  | { readonly kind: 'slow' }
  | { readonly kind: 'error'; readonly status: number };

export type Directive =
  | { readonly kind: 'say'; readonly text: string }
  | { readonly kind: 'write'; readonly path: string; readonly content: string }
  | { readonly kind: 'shell'; readonly command: string }
  | { readonly kind: 'slow' }
  | { readonly kind: 'err'; readonly status: number };

export const directivesIn = (text: string): Directive[] =>
  [...text.matchAll(/\[\[(say|write|shell|slow|err)(?:\s+([\s\S]*?))?\]\]/g)].map(([, kind, rest = '']) => {
    if (kind === 'write') {
      const [, path = '', content = ''] = /^(\S+)\s?([\s\S]*)$/.exec(rest) ?? [];
      return { kind, path, content: content.replaceAll('\\n', '\n') };
    }
    if (kind === 'shell') return { kind, command: rest };
    if (kind === 'err') return { kind, status: Number(rest) };
    if (kind === 'slow') return { kind };
    return { kind: 'say', text: rest };
  });

/**
 * The user's last prompt, reminders of the agent itself left out, and the tool results since. Of several user messages
 * in a row the last with a directive counts: one before it was interrupted without an answer.
 */
const lastPrompt = ({ items }: Asked): { text: string; results: string[] } => {
  const results: string[] = [];
  const prompt: string[] = [];
  for (const { role, text } of items.toReversed()) {
    if (role === 'user' && /^\s*<system-reminder>/.test(text)) continue;
    if (role === 'user') prompt.unshift(text);
    else if (prompt.length > 0) break;
    else if (role === 'tool') results.unshift(text);
  }
  return { text: prompt.findLast((each) => directivesIn(each).length > 0) ?? prompt.join('\n'), results };
};

export const decide = (asked: Asked): Answer => {
  if (asked.json !== null)
    return { kind: 'text', text: JSON.stringify(Object.fromEntries(asked.json.map((name) => [name, 'stub']))) };
  const { text, results } = lastPrompt(asked);
  // Titles and suggestions are asked for with the same prompt and no tools: they must not act.
  if (asked.tools.length === 0) return { kind: 'text', text: 'A title' };
  const all = directivesIn(text);
  // What follows an endless answer was asked after that was interrupted: some agents send both as one message.
  const interrupted = all.findLastIndex(({ kind }, at) => kind === 'slow' && at < all.length - 1);
  const directives = all.slice(interrupted + 1);
  const acting = directives.filter(({ kind }) => kind === 'write' || kind === 'shell');
  const next = acting[results.length];
  const said = directives.flatMap((each) => (each.kind === 'say' ? [each.text] : [])).join(' ');
  if (next !== undefined) return callFor(next, asked, results.length, said);
  const error = directives.find((each) => each.kind === 'err');
  if (error?.kind === 'err') return { kind: 'error', status: error.status };
  if (directives.some(({ kind }) => kind === 'slow')) return { kind: 'slow' };
  const told = results.at(-1);
  return {
    kind: 'text',
    text:
      told === undefined
        ? said || 'This is the model stub. It was told nothing to do.'
        : `Done. The tool said: ${told.trim().slice(0, 300)}`,
  };
};

const callFor = (directive: Directive, { tools, items }: Asked, done: number, said: string): Answer => {
  const writes = directive.kind === 'write';
  const names = writes ? /^(write_file|write|create|apply_patch)$/i : /^(run_shell_command|bash|exec_command|shell)$/i;
  const tool = tools.find(({ name }) => names.test(name));
  if (tool === undefined)
    return { kind: 'text', text: `No tool for "${directive.kind}" among: ${tools.map(({ name }) => name).join(', ')}` };
  const id = `call_${items.length}_${done}`;
  const text = done === 0 && said !== '' ? said : `I will use ${tool.name}.`;
  return { kind: 'tool', text, id, name: tool.name, input: inputFor(directive, tool) };
};

const inputFor = (directive: Directive, { name, parameters, required }: Tool): Record<string, unknown> => {
  if (directive.kind === 'write' && name === 'apply_patch') {
    const lines = directive.content.split('\n').map((line) => `+${line}`);
    return { input: ['*** Begin Patch', `*** Add File: ${directive.path}`, ...lines, '*** End Patch', ''].join('\n') };
  }
  const known: Record<string, unknown> =
    directive.kind === 'write'
      ? {
          file_path: directive.path,
          filePath: directive.path,
          path: directive.path,
          content: directive.content,
          file_text: directive.content,
        }
      : directive.kind === 'shell'
        ? {
            command: directive.command,
            cmd: directive.command,
            description: 'run it',
            justification: 'run it',
            sandbox_permissions: 'require_escalated',
          }
        : {};
  const wanted = Object.keys(parameters).filter((each) => each in known);
  const filled = required.filter((each) => !(each in known)).map((each) => [each, filler(parameters[each])]);
  return Object.fromEntries([...wanted.map((each) => [each, known[each]]), ...filled]) as Record<string, unknown>;
};

const filler = (type: string | undefined): unknown =>
  type === 'boolean' ? false : type === 'number' || type === 'integer' ? 1 : type === 'array' ? [] : 'stub';

/** In pieces of a word each, as a model would. */
export const words = (text: string): string[] => text.match(/\S+\s*/g) ?? (text === '' ? [] : [text]);
