/**
 * Whether a rule is about a request. Pure and total. The rule not to break: an allow rule matches only what
 * it certainly covers, a reject or ask rule everything it may cover; what cannot be compared is no match for either.
 * Called by `policy.ts` for verdicts and by `offers.ts` for scopes and examples.
 */
import type { CommandReading } from '#protocol/events.ts';
import type { RuleDraft, RuleMatch } from '#protocol/policy.ts';
import { hasRisk, isCommand, namedPaths, relativeTo, type PolicyRequest } from './request.ts';

/** `near`: it would be about this, if it were not for that; the clause goes after "but". */
export type Fit = { readonly fit: 'match' } | { readonly fit: 'near'; readonly why: string } | { readonly fit: 'none' };
const match: Fit = { fit: 'match' };
const none: Fit = { fit: 'none' };
const near = (why: string): Fit => ({ fit: 'near', why });

/** One word against one pattern, `*` for any run of characters; linear, so that no pattern can make it slow. */
const wordFits = (word: string, pattern: string): boolean => {
  const [head = '', ...runs] = pattern.split('*');
  if (runs.length === 0) return word === head;
  if (!word.startsWith(head)) return false;
  const tail = runs.pop() ?? '';
  let at = head.length;
  for (const run of runs) {
    const next = word.indexOf(run, at);
    if (next === -1) return false;
    at = next + run.length;
  }
  return word.length - tail.length >= at && word.endsWith(tail);
};

/** Arguments against words. An argument only the shell would know fits a wildcard of a wide rule, and nothing else. */
const wordsFit = (args: readonly (string | null)[], patterns: readonly string[], isWide: boolean): boolean => {
  const open = patterns.at(-1) === '**';
  const fixed = open ? patterns.slice(0, -1) : patterns;
  if (open ? args.length < fixed.length : args.length !== fixed.length) return false;
  if (!isWide && args.includes(null)) return false;
  return fixed.every((pattern, index) => {
    const word = args[index] ?? null;
    return word === null ? pattern.includes('*') : wordFits(word, pattern);
  });
};

/** Relative path against a glob, part by part; `**` crosses folders. */
export const globFits = (path: string, glob: string): boolean => {
  const [parts, patterns] = [path === '' ? [] : path.split('/'), glob.split('/').filter((part) => part !== '')];
  // fits[i]: the patterns so far fit the first i parts.
  let fits = parts.map(() => false);
  fits.unshift(true);
  for (const pattern of patterns) {
    fits =
      pattern === '**'
        ? fits.map((_, count) => fits.slice(0, count + 1).includes(true))
        : fits.map((_, count) => count > 0 && fits[count - 1] === true && wordFits(parts[count - 1] ?? '', pattern));
  }
  return fits.at(-1) === true;
};

/** Why a command is more than one program with words. */
const notSimple = (reading: CommandReading): string => {
  const [operator, through] = [reading.operators[0], reading.programs.find(({ via }) => via.length > 0)?.via[0]];
  if (reading.uninspectable.length > 0) return 'the command cannot be inspected to its end';
  if (operator === 'newline') return 'the command has more than one line';
  if (operator !== undefined) return `the command has ${operator}`;
  if (reading.substitutions.length > 0) return 'the command has a substitution';
  if (through !== undefined) return `the command goes through ${through}`;
  if (reading.assignments.length > 0) return 'the command sets variables';
  if (reading.hereDocuments > 0) return 'the command has a here-document';
  return 'the command is not one plain program with its words';
};

type By<B extends RuleMatch['by']> = Extract<RuleMatch, { by: B }>;

const commandFits = (rule: By<'command'>, request: PolicyRequest, isAllow: boolean): Fit => {
  const { reading, env } = request.facts;
  if (reading === undefined) return none;
  const programs = reading.programs.filter(({ name, args }) => {
    if (name === null) return false;
    const isSame = name === rule.program || (!isAllow && wordFits(name.split('/').at(-1) ?? '', rule.program));
    return isSame && wordsFit(args, rule.args, !isAllow);
  });
  if (programs.length === 0) return none;
  if (!isAllow) return match;
  // The words say nothing of a file that is written on the side.
  if (reading.redirections.length > 0) return near('the command has a redirection');
  if (!reading.simple) return near(notSimple(reading));
  return (env?.length ?? 0) > 0 ? near('the command changes environment variables') : match;
};

const textFits = (rule: By<'text'>, { facts }: PolicyRequest): Fit => {
  if (facts.commandText !== rule.text || hasRisk(facts, 'cut_by_agent')) return none;
  return facts.cwd === rule.cwd ? match : near('the command runs in another folder');
};

const pathFits = (rule: By<'path'>, request: PolicyRequest, isAllow: boolean): Fit => {
  const isOf = (path: string): boolean => {
    const relative = relativeTo(request.workspacePath, path);
    if (relative === null) return false;
    // Where case does not matter to the disk, another spelling must not lead past a rule that says no.
    return isAllow ? globFits(relative, rule.glob) : globFits(relative.toLowerCase(), rule.glob.toLowerCase());
  };
  const [paths, effects] = [namedPaths(request), new Set<string>(rule.effects)];
  const known = request.effects.filter((effect) => effects.has(effect));
  if (!isAllow) {
    // A command may do anything to what it names.
    const isMeant = known.length > 0 || request.effects.includes('execute');
    return isMeant && paths.some(({ path }) => isOf(path)) ? match : none;
  }
  if (paths.length === 0 || !paths.some(({ path }) => isOf(path))) return none;
  if (known.length === 0) return none;
  if (known.length < request.effects.length) return near('it does more than that to these files');
  return paths.every(({ path }) => isOf(path)) ? match : near('it touches other files too');
};

const toolFits = (rule: By<'tool'>, draft: RuleDraft, request: PolicyRequest, isAllow: boolean): Fit => {
  if (request.tool?.name !== rule.tool) return none;
  const { server } = request.tool;
  if (!isAllow) return rule.server === undefined || rule.server === server ? match : none;
  if ((rule.server ?? null) !== server) return none;
  if (server === null) return match;
  const bound = draft.bound?.mcpSha256;
  return bound !== undefined && bound === request.mcpSha256
    ? match
    : near('the configuration of its server is not the one the rule was made for');
};

const fileEffects: ReadonlySet<string> = new Set(['read', 'search', 'write', 'delete', 'move']);

const effectFits = (rule: By<'effect'>, request: PolicyRequest, isAllow: boolean): Fit => {
  const effects = new Set<string>(rule.effects);
  if (!isAllow) return request.effects.some((effect) => effects.has(effect)) ? match : none;
  if (!request.effects.some((effect) => effects.has(effect))) return none;
  const more = request.effects.find((effect) => !effects.has(effect));
  if (more !== undefined) return near(`it does more than that (${more})`);
  const { facts } = request;
  if (isCommand(facts)) {
    if (facts.reading === undefined) return near('the command was not read');
    if (facts.reading.redirections.length > 0) return near('the command has a redirection');
    if (!facts.reading.simple) return near(notSimple(facts.reading));
    return (facts.env?.length ?? 0) > 0 ? near('the command changes environment variables') : match;
  }
  const isNowhere = facts.paths.length === 0 && request.effects.some((effect) => fileEffects.has(effect));
  return isNowhere ? near('it names no path') : match;
};

const byFits = (draft: RuleDraft, request: PolicyRequest, isAllow: boolean): Fit => {
  const rule = draft.match;
  switch (rule.by) {
    case 'exact':
      return request.digest !== null && request.digest === rule.digest ? match : none;
    case 'command':
      return commandFits(rule, request, isAllow);
    case 'text':
      return textFits(rule, request);
    case 'path':
      return pathFits(rule, request, isAllow);
    case 'tool':
      return toolFits(rule, draft, request, isAllow);
    case 'effect':
      return effectFits(rule, request, isAllow);
    case 'risk':
      return !isAllow && hasRisk(request.facts, ...rule.codes) ? match : none;
  }
};

/** Only these may match what is compound, uninspectable or on the always-ask list: they say exactly what is meant. */
export const isNarrow = ({ match: { by } }: RuleDraft): boolean => by === 'exact' || by === 'text';

/** Whether the rule is about the request, its time and history aside. */
export const fitOf = (draft: RuleDraft, request: PolicyRequest): Fit => {
  if (draft.agentId !== null && draft.agentId !== request.agentId) return none;
  if (draft.workspaceId !== null && draft.workspaceId !== request.workspaceId) return none;
  const isAllow = draft.effect === 'allow';
  const fit = byFits(draft, request, isAllow);
  const bound = draft.bound?.executable;
  if (fit.fit !== 'match' || !isAllow || bound === undefined) return fit;
  const isSame = request.program?.path === bound.path && request.program.sha256 === bound.sha256;
  return isSame ? match : near('the program is not the one the rule was made for');
};

const places = {
  outside: 'it reaches outside the workspace',
  secret: 'it touches a secret file',
  agent_config: 'it touches configuration of agents, editors or git',
  unknown: 'where it reaches is not known',
  inside: null,
} as const;

/** What no allow rule but a narrow one may cover (R-18, T43), as a clause; null where a wide rule may. */
export const floorOf = (request: PolicyRequest): string | null => {
  const { facts, effects, tool } = request;
  const { reading } = facts;
  if (hasRisk(facts, 'unannounced')) return 'the agent did not announce it';
  if (facts.uninspectable || (reading?.uninspectable.length ?? 0) > 0) return 'it cannot be inspected';
  if (effects.every((effect) => effect === 'other') && tool === null) return 'what it does is not known';
  const place = facts.paths.map((path) => places[path.place]).find((clause) => clause !== null);
  if (place !== undefined) return place;
  if (hasRisk(facts, 'moves_target', 'redirect_outside')) return places.outside;
  if (request.linked) return 'a path leads through a symbolic link';
  if (effects.includes('install')) return 'it installs packages';
  if (effects.includes('fetch')) return 'it uses the network';
  if (hasRisk(facts, 'recursive_delete')) return 'it deletes whole folders';
  const stop = facts.risks.find((risk) => risk.level === 'stop');
  return stop === undefined
    ? null
    : `it carries a risk: ${stop.sentence.charAt(0).toLowerCase()}${stop.sentence.slice(1)}`;
};

/** Whether a rule could decide this request: its time and history, trust and the always-ask list aside. */
export const covers = (draft: RuleDraft, request: PolicyRequest): boolean =>
  fitOf(draft, request).fit === 'match' && (draft.effect !== 'allow' || isNarrow(draft) || floorOf(request) === null);
