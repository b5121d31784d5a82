/**
 * What an "always" may save for a request: the exact bytes first, then wider scopes, each only if it would
 * really have decided this request. Pure. Called by the desk for a card; `remember` alone saves the first.
 */
import type { RuleOffer } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { RuleDraft, RuleMatch, RuleScope } from '#protocol/policy.ts';
import { examplesOf } from './examples.ts';
import { covers } from './matching.ts';
import { relativeTo, type PolicyRequest } from './request.ts';
import { ruleSentence, type RuleNames } from './sentences.ts';

/** Programs whose first word is what they do: of these "this and any further arguments" says something. */
const withSubcommands = new Set(
  'git npm pnpm yarn bun deno node cargo go make just task docker podman kubectl gh pip pip3 uv poetry dotnet mvn gradle gem bundle rake composer swift mix terraform'.split(
    ' ',
  ),
);

const wide = (request: PolicyRequest): RuleMatch[] => {
  const { facts, effects, tool, workspacePath } = request;
  const found: RuleMatch[] = [];
  const { commandText, cwd, reading } = facts;
  if (commandText !== undefined && commandText.length <= limits.ruleTextUnits && cwd !== undefined)
    found.push({ by: 'text', text: commandText, cwd });
  // By its name alone a program could be any later: only one that was found, and is bound to, is offered.
  const [program] = reading?.simple === true && request.program !== null ? reading.programs : [];
  const args = program?.args.filter((word) => word !== null);
  if (program !== undefined && program.name !== null && args?.length === program.args.length && args.length <= 50) {
    const { name } = program;
    // A star would be read as a wildcard.
    if (!args.some((word) => word.includes('*') || word.length > 1000) && name.length <= 500)
      found.push({ by: 'command', program: name, args });
    const [first = ''] = args;
    if (withSubcommands.has(name) && /^[a-z][\w:-]*$/.test(first))
      found.push({ by: 'command', program: name, args: [first, '**'] });
  }
  const touched = new Set(facts.paths.map(({ path }) => relativeTo(workspacePath, path)));
  const [path] = touched;
  const does = effects.filter(
    (effect) =>
      effect === 'read' || effect === 'search' || effect === 'write' || effect === 'delete' || effect === 'move',
  );
  if (
    touched.size === 1 &&
    typeof path === 'string' &&
    path !== '' &&
    path.length < 900 &&
    !path.includes('*') &&
    does.length > 0
  ) {
    found.push({ by: 'path', glob: path, effects: does });
    const folder = path.split('/').slice(0, -1).join('/');
    found.push({ by: 'path', glob: folder === '' ? '**' : `${folder}/**`, effects: does });
  }
  if (tool !== null)
    found.push({ by: 'tool', tool: tool.name, ...(tool.server === null ? {} : { server: tool.server }) });
  return found;
};

const draftOf = (request: PolicyRequest, match: RuleMatch): RuleDraft => ({
  effect: 'allow',
  agentId: request.agentId,
  workspaceId: request.workspaceId,
  match,
  ...(request.program !== null ? { bound: { executable: request.program } } : {}),
  ...(match.by === 'tool' && request.mcpSha256 !== null ? { bound: { mcpSha256: request.mcpSha256 } } : {}),
  expiresAt: null,
  uses: null,
  limit: null,
});

/** One scope with its words and examples, as a card or an editor shows it. */
export const scopeOf = (draft: RuleDraft, names: RuleNames, request?: PolicyRequest): RuleScope => {
  const exact = request === undefined ? undefined : { kind: request.kind, headline: request.facts.headline };
  return { draft, sentence: ruleSentence(draft, names, exact), ...examplesOf(draft, exact?.headline) };
};

/** Null where nothing exact is known, or the kind is decided each time. */
export const offerRule = (request: PolicyRequest, names: RuleNames): RuleOffer | null => {
  if (request.digest === null) return null;
  const matches: RuleMatch[] = [{ by: 'exact', digest: request.digest }, ...wide(request)];
  const scopes = matches
    .map((match) => draftOf(request, match))
    .filter((draft) => covers(draft, request))
    .slice(0, 6)
    .map((draft) => scopeOf(draft, names, request));
  return scopes.length === 0 ? null : { scopes };
};
