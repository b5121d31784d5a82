/** `bridge policy`: the rules from a terminal: shown, tried on requests, replaced by those of a file, or by a preset (R-17). */
import { readFileSync } from 'node:fs';
import { presets, policySample, ruleFile, type PolicySample, type RuleDraft, type RuleView } from '#protocol/policy.ts';
import { explain, z } from '#protocol/schema.ts';
import { stateDirectories } from '../ledger/paths.ts';
import { CliError, exits, read, usage, type Verb } from './args.ts';
import { connectControl, type Control } from './control.ts';
import { bold, dim, inert, print, printJson, warn } from './output.ts';

const help = `bridge policy [show] [--json]
bridge policy test FILE [--expect allow|ask|reject] [--rules RULES.json] [--json]
bridge policy set RULES.json
bridge policy preset careful|edits|custom
bridge policy suggestions WORKSPACE-ID [--json]

test: FILE holds one sample request or a list of them as JSON: {"command": "git push"}, {"argv": ["npm", "test"]},
{"path": "src/a.ts", "effect": "write"} or {"tool": "send"}, with workspaceId, agentId, cwd, trusted where they matter.
Nothing is asked or run. With --rules the rules of that file are tried instead of the saved ones.
Exit code: 1 when a verdict is not the expected one.
set: replaces the rules you wrote by those of the file; remembered ones and the preset stay. A rules file is
{"rules": [...]}; docs/policy.schema.json describes it.

Example: bridge policy test push.json --expect ask`;

const verdicts = ['allow', 'ask', 'reject'] as const;

const parsed = <T extends z.core.$ZodType>(file: string, schema: T): z.infer<T> => {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new CliError(`${file} could not be read as JSON.`, exits.failed, { cause });
  }
  const result = z.safeParse(schema, value);
  if (!result.success) throw new CliError(`${file}: ${explain(result.error)}`);
  return result.data;
};

const samplesIn = (file: string): PolicySample[] => {
  const samples = parsed(file, z.union([policySample, z.array(policySample)]));
  return Array.isArray(samples) ? samples : [samples];
};
const rulesIn = (file: string): RuleDraft[] => parsed(file, ruleFile).rules;

const shown = ({ command, argv, path, tool, effect }: PolicySample): string =>
  inert(command ?? argv?.join(' ') ?? (path === undefined ? (tool ?? '') : `${effect ?? 'write'} ${path}`));

const printRule = (rule: RuleView): void => {
  const state = rule.enabled ? '' : ' (off)';
  print(
    `${rule.effect.padEnd(7)}${inert(rule.sentence)}${state}  ${dim(`${rule.source}, ${rule.hits} hits, ${rule.ruleId}`)}`,
  );
};

const show = async ({ client }: Control, json: boolean): Promise<number> => {
  const policy = await client.call('policy.get', {});
  if (json) {
    printJson(policy);
    return exits.ok;
  }
  print(`${bold(`Preset ${policy.preset}`)}  ${dim(`generation ${policy.generation}, digest ${policy.digest}`)}`);
  // In the order they are asked.
  for (const effect of ['reject', 'ask', 'allow'] as const)
    policy.rules.filter((rule) => rule.effect === effect).forEach(printRule);
  return exits.ok;
};

const test = async (
  { client }: Control,
  samples: readonly PolicySample[],
  options: { expect: (typeof verdicts)[number] | undefined; rules: RuleDraft[] | undefined; json: boolean },
): Promise<number> => {
  let differ = 0;
  for (const sample of samples) {
    const answer = await client.call('policy.test', { sample, ...(options.rules && { rules: options.rules }) });
    const isOther = options.expect !== undefined && answer.verdict !== options.expect;
    if (isOther) differ += 1;
    if (options.json) printJson({ sample, ...answer, ...(options.expect && { expected: options.expect }) });
    else
      print(`${isOther ? '✗' : ' '} ${bold(answer.verdict.padEnd(7))}${shown(sample)}  ${dim(inert(answer.because))}`);
  }
  if (differ > 0 && !options.json) warn(`${differ} of ${samples.length} are not ${options.expect}.`);
  return differ > 0 ? exits.failed : exits.ok;
};

const suggest = async ({ client }: Control, workspaceId: string, json: boolean): Promise<number> => {
  const answer = await client.call('policy.suggestions', { workspaceId });
  if (json) printJson(answer);
  else if (answer.problem !== null) print(`${inert(answer.path)}: ${inert(answer.problem)}`);
  else if (answer.rules.length === 0) print(`${inert(answer.path)} suggests nothing.`);
  else
    for (const { draft, sentence, saved } of answer.rules)
      print(`${draft.effect.padEnd(7)}${inert(sentence)}${saved ? dim('  saved') : ''}`);
  return exits.ok;
};

export const policy: Verb = {
  name: 'policy',
  about: 'Show the rules, try them, replace them',
  help,
  async run(args) {
    const { values, positionals } = read(args, { expect: { type: 'string' }, rules: { type: 'string' } });
    const [what = 'show', given, ...more] = positionals;
    const json = values.json === true;
    if (more.length > 0) throw usage(`"${more[0]}" is one argument too many.`);
    const named = (thing: string): string => {
      if (given === undefined) throw usage(`Name ${thing}.`);
      return given;
    };
    const expected = verdicts.find((verdict) => verdict === values.expect);
    if (values.expect !== undefined && expected === undefined) throw usage('--expect takes allow, ask or reject.');
    // Files are read before anything is connected: a wrong one is told without a bridge.
    const samples = what === 'test' ? samplesIn(named('a file with samples')) : [];
    const tried = values.rules === undefined ? undefined : rulesIn(values.rules);
    const rules = what === 'set' ? rulesIn(named('a file with rules')) : [];
    const preset = presets.find((name) => name === given);
    if (what === 'preset' && preset === undefined) throw usage('A preset is careful, edits or custom.');
    if (!['show', 'test', 'set', 'preset', 'suggestions'].includes(what))
      throw usage(`"${what}" is not one of show, test, set, preset, suggestions.`);
    const control = await connectControl(stateDirectories(values.state));
    try {
      const { client } = control;
      if (what === 'show') return await show(control, json);
      if (what === 'test') return await test(control, samples, { expect: expected, rules: tried, json });
      if (what === 'suggestions') return await suggest(control, named('a workspace'), json);
      const answer =
        what === 'set'
          ? await client.change('policy.load', { rules })
          : await client.change('policy.preset', { preset: preset ?? 'careful' });
      if (json) printJson(answer);
      else print(what === 'set' ? `${rules.length} rules are in force.` : `The preset ${preset} is in force.`);
      return exits.ok;
    } finally {
      control.close();
    }
  },
};
