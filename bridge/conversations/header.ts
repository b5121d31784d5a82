/**
 * Header state of a conversation: what a list row and a header show without reading events. Kept as JSON beside the
 * conversation, changed in the transaction of the event that tells it, so that both agree after any crash.
 */
import type { AgentCommand, AgentOption, BlobRef, Containment, Enforcement, ModeInfo } from '#protocol/events.ts';
import type { PromptPart } from '#protocol/methods/conversation.ts';
import type { Reference } from './references.ts';

export interface QueuedPrompt {
  readonly queueId: string;
  readonly at: number;
  readonly content: readonly PromptPart[];
}

export interface Header {
  readonly enforcement: Enforcement | null;
  readonly enforcementWhy: string | null;
  readonly containment: Containment | null;
  readonly agentVersion: string | null;
  readonly modes: readonly ModeInfo[];
  readonly modeId: string | null;
  readonly models: readonly ModeInfo[];
  readonly modelId: string | null;
  readonly options: readonly AgentOption[];
  readonly commands: readonly AgentCommand[];
  readonly images: boolean;
  readonly queue: readonly QueuedPrompt[];
  readonly queuePaused: boolean;
  /** The operator chose to run an agent that may act without asking (G-20); the mark stays. */
  readonly acceptUnrestricted: boolean;
  /** Given by the operator or the agent; the first prompt no longer names the conversation. */
  readonly titled: boolean;
  /** The conversation it was continued from. */
  readonly parentId: string | null;
  /** Workspaces beside its own that it may read. */
  readonly references: readonly Reference[];
}

export const newHeader = (choice: {
  acceptUnrestricted: boolean;
  titled: boolean;
  modeId: string | null;
  parentId?: string | null;
  references?: readonly Reference[];
}): Header => ({
  enforcement: null,
  enforcementWhy: null,
  containment: null,
  agentVersion: null,
  modes: [],
  modeId: choice.modeId,
  models: [],
  modelId: null,
  options: [],
  commands: [],
  images: false,
  queue: [],
  queuePaused: false,
  acceptUnrestricted: choice.acceptUnrestricted,
  titled: choice.titled,
  parentId: choice.parentId ?? null,
  references: choice.references ?? [],
});

/** Written by `JSON.stringify` of a Header by this bridge alone; a later version adds members with a default here. */
export const readHeader = (json: string): Header => ({
  ...newHeader({ acceptUnrestricted: false, titled: true, modeId: null }),
  ...(JSON.parse(json) as Partial<Header>),
});

/** The words of a prompt, as its message row stores them: file links become `@path`. */
export const promptText = (content: readonly PromptPart[]): string =>
  content
    .flatMap((part) => (part.type === 'text' ? [part.text] : part.type === 'file' ? [`@${part.path}`] : []))
    .join('\n');

export const promptBlobs = (content: readonly PromptPart[]): BlobRef[] =>
  content.flatMap((part) => (part.type === 'blob' ? [part.blob] : []));

/** First line of a prompt, cut to a title. */
export const titleOf = (content: readonly PromptPart[]): string | null => {
  const line = promptText(content)
    .split('\n')
    .map((each) => each.trim())
    .find((each) => each !== '');
  if (line === undefined) return null;
  const characters = Array.from(line.replaceAll(/\s+/g, ' '));
  return characters.length <= 80 ? characters.join('') : `${characters.slice(0, 79).join('').trimEnd()}…`;
};
