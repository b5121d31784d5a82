/**
 * What the rules look at: a request for permission, reduced to values that can be compared. Pure. The rule not
 * to break: nothing here comes from the agent's words, and what is not known is said as not known, never guessed.
 * Made by the desk and by the test box; read by `matching.ts` and `policy.ts`.
 */
import { createHash } from 'node:crypto';
import type { ActionKind, ApprovalFacts, ToolKind } from '#protocol/events.ts';
import { canonical, type Json } from '#protocol/json.ts';
import type { PolicyEffect } from '#protocol/policy.ts';
import type { ApprovalRequest, Program } from '../contract.ts';

export interface PolicyRequest {
  readonly kind: ActionKind;
  readonly agentId: string;
  readonly workspaceId: string;
  readonly workspacePath: string;
  readonly facts: ApprovalFacts;
  readonly effects: readonly PolicyEffect[];
  /** Null where the bytes are not wholly known, or the kind is decided each time. */
  readonly digest: string | null;
  readonly tool: { readonly name: string; readonly server: string | null } | null;
  /** The program of a command as it is on disk; null where it was not found or there is more than one. */
  readonly program: Program | null;
  /** Of the MCP server the tool belongs to; null where it is not known. */
  readonly mcpSha256: string | null;
  /** The agent offered a plain "allow once". */
  readonly answerable: boolean;
  /** A path leads through a symbolic link. */
  readonly linked: boolean;
  readonly trusted: boolean;
  /** Why allow rules pause in this conversation. */
  readonly paused: string | null;
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Without what a file was before: a rule is about what is written and run, and must match again after it happened. */
const withoutBase = (detail: Json): Json => {
  if (detail === null || typeof detail !== 'object' || !('base' in detail)) return detail;
  return Object.fromEntries(Object.entries(detail).filter(([name]) => name !== 'base'));
};

/**
 * Digest of what an exact rule is bound to: the same effects and detail, by the same program, in the same directory.
 * Conversation, turn, tool call and nonce are left out; another agent program or another root asks again.
 */
export const matchDigest = (
  request: Pick<ApprovalRequest, 'kind' | 'agent' | 'workspace' | 'effects' | 'detail'>,
): string =>
  sha256(
    canonical({
      kind: request.kind,
      agent: {
        id: request.agent.id,
        executableSha256: request.agent.executableSha256,
        entrySha256: request.agent.entrySha256,
      },
      workspace: { id: request.workspace.id, rootSha256: request.workspace.rootSha256 },
      effects: request.effects,
      detail: withoutBase(request.detail),
    }),
  );

export const hasRisk = (facts: ApprovalFacts, ...codes: string[]): boolean =>
  facts.risks.some((risk) => codes.includes(risk.code));

/** Decided each time: trust, reveal, agent.add. */
const remembered: ReadonlySet<ActionKind> = new Set(['tool', 'file.write', 'command']);

/** The bytes are all there, whatever they mean: an uninspectable command line is still exactly itself. */
const isWhole = ({ kind, facts }: Pick<ApprovalRequest, 'kind' | 'facts'>): boolean =>
  remembered.has(kind) &&
  !hasRisk(facts, 'unannounced', 'cut_by_agent') &&
  (!facts.uninspectable || isCommand(facts) || facts.diffs.length > 0);

export const isCommand = ({ argv, commandText }: ApprovalFacts): boolean =>
  argv !== undefined || commandText !== undefined;

const toolEffects: Record<ToolKind, PolicyEffect> = {
  read: 'read',
  edit: 'write',
  delete: 'delete',
  move: 'move',
  search: 'search',
  execute: 'execute',
  think: 'other',
  fetch: 'fetch',
  switch_mode: 'other',
  other: 'other',
};
const deleting = new Set(['rm', 'rmdir', 'unlink', 'shred']);

const commandEffects = (facts: ApprovalFacts): PolicyEffect[] => {
  const { reading } = facts;
  const programs = (reading?.programs ?? []).map(({ name }) => name?.split('/').at(-1) ?? '');
  const writes = reading?.redirections.some(({ operator }) => operator.includes('>')) ?? false;
  return [
    'execute',
    ...(reading?.install !== undefined || hasRisk(facts, 'install') ? (['install'] as const) : []),
    ...((reading?.hosts.length ?? 0) > 0 || hasRisk(facts, 'network', 'private_host') ? (['fetch'] as const) : []),
    ...(programs.some((name) => deleting.has(name)) || hasRisk(facts, 'recursive_delete') ? (['delete'] as const) : []),
    ...(writes ? (['write'] as const) : []),
  ];
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

const effectsOf = ({ kind, facts, detail }: Pick<ApprovalRequest, 'kind' | 'facts' | 'detail'>): PolicyEffect[] => {
  const tool = isObject(detail) && typeof detail['tool'] === 'string' ? detail['tool'] : null;
  const byTool = tool !== null && Object.hasOwn(toolEffects, tool) ? toolEffects[tool as ToolKind] : 'other';
  const effects = new Set<PolicyEffect>([
    ...(isCommand(facts) ? commandEffects(facts) : []),
    ...(kind === 'file.write' || facts.diffs.length > 0 ? (['write'] as const) : []),
    ...(kind === 'tool' ? [byTool] : []),
  ]);
  // A command line says what it does better than a kind of "other" does.
  if (effects.size > 1) effects.delete('other');
  return effects.size === 0 ? ['other'] : [...effects];
};

const textOf = (input: Readonly<Record<string, unknown>>, names: readonly string[]): string | null => {
  const found = names.map((name) => input[name]).find((value) => typeof value === 'string' && value !== '');
  return typeof found === 'string' ? found.slice(0, 200) : null;
};

/** As the agent's own input names it: the only place where a tool has a name that is not prose. */
const toolOf = ({ kind, detail }: Pick<ApprovalRequest, 'kind' | 'detail'>): PolicyRequest['tool'] => {
  if (kind !== 'tool' || !isObject(detail) || typeof detail['rawInput'] !== 'string') return null;
  try {
    const input: unknown = JSON.parse(detail['rawInput']);
    if (!isObject(input)) return null;
    const name = textOf(input, ['tool', 'tool_name', 'toolName']);
    return name === null ? null : { name, server: textOf(input, ['server', 'server_name', 'serverName']) };
  } catch {
    return null; // not JSON: no name is known
  }
};

/** `trusted` and `paused` as they are for the conversation at this moment. */
export const policyRequest = (
  request: ApprovalRequest,
  ground: Pick<PolicyRequest, 'trusted' | 'paused'>,
): PolicyRequest => ({
  kind: request.kind,
  agentId: request.agent.id,
  workspaceId: request.workspace.id,
  workspacePath: request.workspace.path,
  facts: request.facts,
  effects: effectsOf(request),
  digest: isWhole(request) ? matchDigest(request) : null,
  tool: toolOf(request),
  program: request.program ?? null,
  mcpSha256: null,
  answerable: request.options.some((option) => option.meaning === 'allow' && option.kind === 'allow_once'),
  linked: request.linked === true,
  ...ground,
});

/** Relative to the workspace, '' for the folder itself; null outside. Grammar only. */
export const relativeTo = (workspacePath: string, path: string): string | null => {
  const rest = !path.startsWith('/')
    ? path
    : path === workspacePath || path.startsWith(workspacePath === '/' ? '/' : `${workspacePath}/`)
      ? path.slice(workspacePath.length)
      : null;
  const parts = rest?.split('/').filter((part) => part !== '' && part !== '.');
  return parts === undefined || parts.includes('..') ? null : parts.join('/');
};

/** The paths it names, but the directory a command runs in. */
export const namedPaths = ({ facts }: PolicyRequest): ApprovalFacts['paths'] =>
  isCommand(facts) ? facts.paths.filter(({ path }) => path !== facts.cwd) : facts.paths;
