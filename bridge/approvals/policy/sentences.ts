/** A rule in plain words, by the bridge, and what is wrong with one that cannot be saved. Pure; every value is rendered inert. */
import type { PolicyEffect, RuleDraft } from '#protocol/policy.ts';
import { limits } from '#protocol/limits.ts';
import { visible } from '../inert.ts';

/** How people call what a rule names by id; null where it is gone. */
export interface RuleNames {
  readonly agent: (agentId: string) => string | null;
  readonly workspace: (workspaceId: string) => string | null;
}

const effectWords: Record<PolicyEffect, string> = {
  read: 'read',
  search: 'search',
  write: 'write',
  delete: 'delete',
  move: 'move',
  execute: 'run commands',
  install: 'install packages',
  fetch: 'use the network',
  other: 'use other tools',
};
const riskWords: Readonly<Record<string, string>> = {
  outside: 'reach outside the workspace',
  redirect_outside: 'redirect out of it',
  secret: 'touch secret files',
  secret_shaped: 'carry something shaped like a secret',
  agent_config: 'touch configuration of agents, editors or git',
  recursive_delete: 'delete whole folders',
  install: 'install packages',
  network: 'use the network',
  private_host: 'reach private hosts',
  privileged: 'take more rights',
  environment: 'change which code runs',
};
const exactWords: Readonly<Record<string, string>> = {
  'file.write': 'write exactly this content',
  command: 'run exactly this command',
};

const listed = (words: readonly string[]): string =>
  words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;

const spans = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1000, 'second'],
  [1, 'millisecond'],
] as const;
const span = (ms: number): string => {
  const [unit, word] = spans.find(([size]) => ms % size === 0) ?? [1, 'millisecond'];
  return ms === unit ? word : `${String(ms / unit)} ${word}s`;
};

const verb = (
  { match }: RuleDraft,
  exact: { readonly kind: string; readonly headline: string } | undefined,
): string => {
  switch (match.by) {
    case 'exact':
      return exact === undefined
        ? `do exactly the action ${match.digest.slice(0, 12)}…`
        : (exactWords[exact.kind] ?? 'do exactly this');
    case 'command': {
      const open = match.args.at(-1) === '**';
      const words = [match.program, ...(open ? match.args.slice(0, -1) : match.args)];
      const shown = words.map((word) => (word === '' || /\s/.test(word) ? JSON.stringify(word) : word)).join(' ');
      return `run “${shown}”${open ? ' with any further arguments' : ''}`;
    }
    case 'text':
      return `run exactly “${match.text}” in ${match.cwd}`;
    case 'path':
      return `${listed(match.effects)} ${match.glob === '**' ? 'any file' : `“${match.glob}”`}`;
    case 'tool':
      return `use the tool “${match.tool}”${match.server === undefined ? '' : ` of the server “${match.server}”`}`;
    case 'effect':
      return listed(match.effects.map((effect) => effectWords[effect]));
    case 'risk':
      return listed(match.codes.map((code) => riskWords[code] ?? `do what has the risk “${code}”`));
  }
};

const bounds = ({ bound, expiresAt, uses, limit }: RuleDraft): string =>
  [
    bound?.executable === undefined ? '' : ', with the same program',
    bound?.mcpSha256 === undefined ? '' : ', with the same server configuration',
    uses === null ? '' : `, ${uses === 1 ? 'once' : `${String(uses)} times`}`,
    limit === null
      ? ''
      : `, at most ${limit.count === 1 ? 'once' : `${String(limit.count)} times`} per ${span(limit.perMs)}`,
    expiresAt === null
      ? ''
      : `, until ${new Date(Math.min(expiresAt, 8.64e15)).toISOString().slice(0, 16).replace('T', ' ')} UTC`,
  ].join('');

const may = { allow: 'may', reject: 'may not', ask: 'must always ask to' } as const;

/** `exact`: what the action of an exact rule was, where it is at hand. At most 1000 units. */
export const ruleSentence = (
  draft: RuleDraft,
  names: RuleNames,
  exact?: { readonly kind: string; readonly headline: string },
): string => {
  const who = draft.agentId === null ? 'Any agent' : (names.agent(draft.agentId) ?? draft.agentId);
  const path = draft.workspaceId === null ? null : names.workspace(draft.workspaceId);
  const where = draft.workspaceId === null ? 'any workspace' : (path ?? 'a workspace that is gone');
  const at = draft.effect === 'ask' && draft.workspaceId === null ? '' : ` in ${where}`;
  const what = exact === undefined || draft.match.by !== 'exact' ? '' : `: ${exact.headline}`;
  return visible(`${who} ${may[draft.effect]} ${verb(draft, exact)}${at}${bounds(draft)}${what}`)
    .slice(0, 1000)
    .toWellFormed();
};

/** Why a draft may not be saved, in one sentence; null where it may. `at`: now, ms. */
export const problemOf = (draft: RuleDraft, at: number): string | null => {
  const { match, effect, limit, expiresAt, uses } = draft;
  if (expiresAt !== null && expiresAt <= at) return 'The rule would have expired already.';
  if (uses === 0) return 'The rule would have no use left.';
  if (limit !== null && limit.count > limits.ruleLimitCount)
    return `A limit counts at most ${String(limits.ruleLimitCount)} matches.`;
  if (limit !== null && limit.perMs > limits.ruleSpanMs) return 'The span of a limit is at most 31 days.';
  if (match.by === 'path' && (match.glob.startsWith('/') || match.glob.split('/').includes('..')))
    return 'A path is relative to the workspace and stays inside.';
  if (match.by === 'command' && match.args.slice(0, -1).includes('**')) return '** may only be the last word.';
  if (effect !== 'allow') return null;
  if (match.by === 'risk') return 'What has a risk is never allowed by a rule about risks.';
  if (match.by === 'command' && match.program.includes('*')) return 'The program of an allow rule is named exactly.';
  if (match.by === 'tool' && match.server !== undefined && draft.bound?.mcpSha256 === undefined)
    return 'A tool of a server is allowed only together with the configuration of that server.';
  return null;
};
