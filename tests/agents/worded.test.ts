import { describe, expect, it } from 'vitest';
import { catalogue } from '../../bridge/agents/catalogue.ts';
import type { ToolCallState } from '../../bridge/agents/contract.ts';
import { wordedCommand } from '../../bridge/agents/worded.ts';

const wording = (id: string) => catalogue.find((entry) => entry.id === id)?.worded ?? null;
const call = (more: Partial<ToolCallState>): ToolCallState => ({ toolCallId: 't', kind: 'execute', ...more });
const says = (text: string): Partial<ToolCallState> => ({ content: [{ type: 'text', text }] });

describe('a command that an agent words instead of giving its input (agents.md 7.2)', () => {
  it('is the title of Gemini’s request, and the end of what Kimi says', () => {
    expect(wordedCommand(call({ title: 'ls -l' }), wording('gemini'))).toEqual({ text: 'ls -l', whole: true });
    const kimi = call({ title: 'Bash', ...says('Requesting approval to Running: ls -l') });
    expect(wordedCommand(kimi, wording('kimi'))).toEqual({ text: 'ls -l', whole: true });
    const background = call(says('Requesting approval to Starting background: ls'));
    expect(wordedCommand(background, wording('kimi'))).toEqual({ text: 'ls', whole: true });
  });

  it('is not whole where Kimi cuts it after 50 characters', () => {
    const shown = `${'x'.repeat(50)}…`;
    const cut = call(says(`Requesting approval to Running: ${shown}`));
    expect(wordedCommand(cut, wording('kimi'))).toEqual({ text: shown, whole: false });
    const just = 'x'.repeat(50);
    expect(wordedCommand(call(says(`Requesting approval to Running: ${just}`)), wording('kimi'))?.whole).toBe(true);
  });

  it('is looked for nowhere else', () => {
    expect(wordedCommand(call({ title: 'ls', kind: 'edit' }), wording('gemini'))).toBeUndefined();
    expect(wordedCommand(call({ title: 'ls', rawInput: '{"command":"rm"}' }), wording('gemini'))).toBeUndefined();
    expect(wordedCommand(call({ title: 'ls', ...says('ls') }), wording('kimi'))).toBeUndefined();
    expect(wordedCommand(call({ title: 'ls' }), wording('claude'))).toBeUndefined();
    expect(wordedCommand(call({}), wording('gemini'))).toBeUndefined();
  });
});
