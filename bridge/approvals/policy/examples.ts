/**
 * What a rule would match and what not, for people: made-up requests around the rule, each really put to the matcher.
 * Pure. Used for the scopes of a card and for the preview of the rule editor.
 */
import type { ApprovalFacts, CommandReading } from '#protocol/events.ts';
import type { PolicyEffect, RuleDraft, RuleMatch, RuleScope } from '#protocol/policy.ts';
import { visible } from '../inert.ts';
import { covers } from './matching.ts';
import type { PolicyRequest } from './request.ts';

interface Example {
  readonly label: string;
  readonly request: PolicyRequest;
}
type Place = ApprovalFacts['paths'][number]['place'];

const noFacts: ApprovalFacts = { headline: '', paths: [], diffs: [], risks: [], uninspectable: false, payloadBytes: 0 };

/** A request the rule's agent, workspace and binding are right for, with nothing else in it. */
const blank = ({ agentId, workspaceId, bound }: RuleDraft): PolicyRequest => ({
  kind: 'tool',
  agentId: agentId ?? '',
  workspaceId: workspaceId ?? '',
  workspacePath: '/workspace',
  facts: noFacts,
  effects: ['other'],
  digest: null,
  tool: null,
  program: bound?.executable ?? null,
  mcpSha256: bound?.mcpSha256 ?? null,
  answerable: true,
  linked: false,
  trusted: true,
  paused: null,
});

const quote = (word: string): string => (/^[\w@%+=:,./*-]+$/.test(word) ? word : JSON.stringify(word));

const readingOf = (words: readonly string[], more: Partial<CommandReading> = {}): CommandReading => ({
  form: 'shell',
  programs: [{ name: words[0] ?? null, args: words.slice(1), via: [] }],
  operators: [],
  redirections: [],
  substitutions: [],
  assignments: [],
  hereDocuments: 0,
  hosts: [],
  uninspectable: [],
  simple: true,
  ...more,
});

const command = (base: PolicyRequest, commandText: string, reading: CommandReading, cwd: string): PolicyRequest => ({
  ...base,
  effects: ['execute'],
  facts: { ...noFacts, commandText, cwd, reading, paths: [{ path: cwd, place: 'inside' }] },
});

const commandExamples = ({ program, args }: Extract<RuleMatch, { by: 'command' }>, base: PolicyRequest): Example[] => {
  const open = args.at(-1) === '**';
  const fixed = [program, ...(open ? args.slice(0, -1) : args)].map((word) => word.replaceAll('*', 'some'));
  const simple = (words: readonly string[]): Example => {
    const label = words.map(quote).join(' ');
    return { label, request: command(base, label, readingOf(words), base.workspacePath) };
  };
  const text = fixed.map(quote).join(' ');
  const id = { name: 'id', args: [], via: [] };
  const with2 = (label: string, operators: string[], substitutions: string[] = []): Example => {
    const one = readingOf(fixed);
    const reading = { ...one, programs: [...one.programs, id], operators, substitutions, simple: false };
    return { label, request: command(base, label, reading, base.workspacePath) };
  };
  const through = readingOf(fixed);
  const viaSudo = {
    ...through,
    programs: through.programs.map((each) => ({ ...each, via: ['sudo'] })),
    simple: false,
  };
  return [
    simple(fixed),
    simple([...fixed, '--more']),
    simple([...fixed, 'one', 'two']),
    with2(`${text} && id`, ['&&']),
    { label: `sudo ${text}`, request: command(base, `sudo ${text}`, viaSudo, base.workspacePath) },
    with2(`${text} $(id)`, [], ['id']),
    ...(fixed.length > 1 ? [simple([program, 'other'])] : []),
  ];
};

const textExamples = ({ text, cwd }: Extract<RuleMatch, { by: 'text' }>, base: PolicyRequest): Example[] => {
  const unread = readingOf([], { programs: [], uninspectable: ['not read'], simple: false });
  const at = (line: string, folder: string): PolicyRequest => command(base, line, unread, folder);
  return [
    { label: `${text}  (in ${cwd})`, request: at(text, cwd) },
    { label: `${text} ; id`, request: at(`${text} ; id`, cwd) },
    { label: `${text}  (in ${cwd}/sub)`, request: at(text, `${cwd}/sub`) },
  ];
};

const touching = (
  base: PolicyRequest,
  effect: PolicyEffect,
  path: string,
  place: Place,
  verb: string = effect,
): Example => ({
  label: `${verb} ${path}`,
  request: { ...base, effects: [effect], facts: { ...noFacts, paths: [{ path, place }] } },
});

const pathExamples = ({ glob, effects }: Extract<RuleMatch, { by: 'path' }>, base: PolicyRequest): Example[] => {
  const first = effects[0] ?? 'read';
  const other = (['write', 'delete', 'read'] as const).find((effect) => !effects.includes(effect)) ?? 'other';
  const shallow = glob.replaceAll('**', 'some').replaceAll('*', 'some');
  const deep = glob.replaceAll('**', 'deep/er').replaceAll('*', 'some');
  return [
    touching(base, first, shallow, 'inside'),
    ...(deep === shallow ? [] : [touching(base, first, deep, 'inside')]),
    ...effects.slice(1, 3).map((effect) => touching(base, effect, shallow, 'inside')),
    touching(base, first, 'elsewhere/file.txt', 'inside'),
    touching(base, other, shallow, 'inside'),
    touching(base, first, `${shallow.split('/').slice(0, -1).concat('.env').join('/')}`, 'secret'),
    touching(base, first, '/etc/hosts', 'outside'),
  ];
};

const toolExamples = ({ tool, server }: Extract<RuleMatch, { by: 'tool' }>, base: PolicyRequest): Example[] => {
  const using = (label: string, name: string, of: string | null, mcpSha256 = base.mcpSha256): Example => ({
    label,
    request: { ...base, tool: { name, server: of }, mcpSha256 },
  });
  const of = server === undefined ? '' : ` of ${server}`;
  return [
    using(`${tool}${of}`, tool, server ?? null),
    using(`${tool}_more${of}`, `${tool}_more`, server ?? null),
    using(`${tool} of another server`, tool, 'another'),
    ...(server === undefined ? [] : [using(`${tool}${of}, configured otherwise`, tool, server, null)]),
  ];
};

const effectExamples = ({ effects }: Extract<RuleMatch, { by: 'effect' }>, base: PolicyRequest): Example[] => {
  const runs = (words: readonly string[], more: readonly PolicyEffect[]): Example => {
    const label = words.map(quote).join(' ');
    const request = command(base, label, readingOf(words), base.workspacePath);
    return { label, request: { ...request, effects: ['execute', ...more] } };
  };
  return [
    ...effects
      .filter((effect) => ['read', 'search', 'write', 'delete', 'move'].includes(effect))
      .map((effect) => touching(base, effect, 'src/file.txt', 'inside')),
    runs(['make', 'test'], []),
    runs(['npm', 'install', 'left-pad'], ['install']),
    runs(['curl', 'https://example.org'], ['fetch']),
    touching(base, effects[0] ?? 'read', '.env', 'secret'),
    touching(base, effects[0] ?? 'read', '/etc/hosts', 'outside'),
  ];
};

const riskExamples = ({ codes }: Extract<RuleMatch, { by: 'risk' }>, base: PolicyRequest): Example[] => {
  const risky = (code: string | null): Example => ({
    label: code === null ? 'an action without a risk note' : `an action with the risk ${code}`,
    request: {
      ...base,
      facts: { ...noFacts, risks: code === null ? [] : [{ code, sentence: code, level: 'warn' }] },
    },
  });
  return [...codes.slice(0, 4).map(risky), risky(null)];
};

const around = (draft: RuleDraft, base: PolicyRequest): Example[] => {
  const { match } = draft;
  switch (match.by) {
    case 'exact':
      return [
        {
          label: base.facts.headline === '' ? 'the same bytes' : base.facts.headline,
          request: { ...base, digest: match.digest },
        },
        { label: 'the same with any byte changed', request: { ...base, digest: '0'.repeat(64) } },
        { label: 'the same in another workspace or by another agent program', request: { ...base, digest: null } },
      ];
    case 'command':
      return commandExamples(match, base);
    case 'text':
      return textExamples(match, base);
    case 'path':
      return pathExamples(match, base);
    case 'tool':
      return toolExamples(match, base);
    case 'effect':
      return effectExamples(match, base);
    case 'risk':
      return riskExamples(match, base);
  }
};

/** `headline`: of the request an exact rule was made for. */
export const examplesOf = (draft: RuleDraft, headline = ''): Pick<RuleScope, 'matches' | 'misses'> => {
  const base = { ...blank(draft), facts: { ...noFacts, headline } };
  const bound = draft.bound?.executable;
  const [rebound] =
    bound === undefined ? [] : around(draft, { ...base, program: { ...bound, sha256: '0'.repeat(64) } });
  const all = [
    ...around(draft, base),
    ...(rebound === undefined ? [] : [{ ...rebound, label: `${rebound.label}  (by a changed program)` }]),
  ];
  const labels = (isMatch: boolean): string[] =>
    all
      .filter(({ request }) => covers(draft, request) === isMatch)
      .map(({ label }) => visible(label).slice(0, 500).toWellFormed())
      .slice(0, 5);
  return { matches: labels(true), misses: labels(false) };
};
