/**
 * A made-up request for trying rules (policy.test): described as a real one of that folder would be. The rule not to
 * break: nothing of it is stored, asked or run. Called by the command table.
 */
import { isAbsolute, join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import type { ToolKind } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { Answer } from '#protocol/methods.ts';
import type { PolicyEffect, PolicySample } from '#protocol/policy.ts';
import type { ApprovalRequest, Described } from '../approvals/contract.ts';
import type { Root } from '../files/contract.ts';
import { aboutRoot, leadsThroughLink } from './about.ts';
import type { Rooms } from './rooms.ts';

const kinds: Record<PolicyEffect, ToolKind> = {
  read: 'read',
  search: 'search',
  write: 'edit',
  delete: 'delete',
  move: 'move',
  execute: 'execute',
  install: 'execute',
  fetch: 'fetch',
  other: 'other',
};

const describeSample = ({ describe }: Rooms, root: Root, sample: PolicySample): Described => {
  const about = aboutRoot(root);
  const { command, argv, path, tool, effect = 'write', cwd = '' } = sample;
  if ([command, argv, path, tool].filter((part) => part !== undefined).length !== 1) throw new Refusal('bad_request');
  const folder = isAbsolute(cwd) ? cwd : join(root.path, cwd);
  if (argv !== undefined) {
    const [program = '', ...args] = argv;
    return describe.command({ command: program, args, env: [], cwd: folder }, about);
  }
  const call = (kind: ToolKind, input: object, paths: readonly string[] = []): Described =>
    describe.permission(
      { toolCallId: 'sample', kind, rawInput: JSON.stringify(input), locations: paths.map((each) => ({ path: each })) },
      about,
    );
  if (command !== undefined) return call('execute', { command, cwd: folder });
  if (path !== undefined) return call(kinds[effect], { path }, [path]);
  return call('other', { tool });
};

/** Without a workspace the one opened last. @throws Refusal workspace_unknown, bad_request */
export const sampleRequest = async (
  rooms: Rooms,
  sample: PolicySample,
): Promise<{ request: ApprovalRequest; trusted: boolean }> => {
  const workspaceId = sample.workspaceId ?? rooms.workspaces.list()[0]?.workspaceId;
  if (workspaceId === undefined) throw new Refusal('workspace_unknown');
  const root = rooms.workspaces.root(workspaceId);
  const described = describeSample(rooms, root, sample);
  const agents = rooms.agents.list();
  const agentId = sample.agentId ?? agents.find((agent) => agent.isDefault)?.agentId ?? '';
  const request: ApprovalRequest = {
    ...described,
    conversationId: '',
    turnId: null,
    toolCallId: null,
    agent: {
      id: agentId,
      name: agents.find((agent) => agent.agentId === agentId)?.title ?? agentId,
      version: '',
      executableSha256: '',
      entrySha256: null,
      model: null,
      session: '',
      enforcement: 'cooperative',
      containment: 'best_effort',
    },
    workspace: { id: workspaceId, rootSha256: root.rootSha256, path: root.path, gitHead: null },
    options: [{ id: 'allow', name: 'Allow', kind: 'allow_once', meaning: 'allow' }],
    program: await rooms.programOf(described.facts),
    linked: leadsThroughLink(root, described.facts),
  };
  return { request, trusted: sample.trusted ?? rooms.trusted(workspaceId) };
};

const suggestionPath = '.countersign/rules.json';

/** What the project says in its file, read through the guarded root; why not, where that is refused. */
export const suggestions = ({ workspaces, rulebook }: Rooms, workspaceId: string): Answer<'policy.suggestions'> => {
  const root = workspaces.root(workspaceId);
  root.check();
  try {
    const text = root.readText(suggestionPath, limits.ruleFileBytes)?.text ?? null;
    return { path: suggestionPath, ...rulebook.suggestions(workspaceId, text) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { path: suggestionPath, rules: [], problem: error.message };
  }
};
