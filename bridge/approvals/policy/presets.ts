/**
 * The presets, as the plain rules they are: what is always asked, what may be read without asking, and for
 * `edits` what may be written. The rule not to break: a command here can do nothing but read, whatever its arguments;
 * the matcher keeps paths inside. Installed by the rulebook, shown by `policy.presets`, used by `policy.ts` for what
 * needs no trust.
 */
import type { Preset, RuleDraft, RuleEffect, RuleMatch } from '#protocol/policy.ts';

const rule = (effect: RuleEffect, title: string, match: RuleMatch): RuleDraft => ({
  effect,
  title,
  agentId: null,
  workspaceId: null,
  match,
  expiresAt: null,
  uses: null,
  limit: null,
});

interface ReadOnlyCommand {
  readonly program: string;
  readonly args: string[];
  /** Reads settings of the folder that may name programs to run, as git does: only when the folder is trusted. */
  readonly runsSettings: boolean;
}
const reads = (program: string, ...lines: string[]): ReadOnlyCommand[] =>
  lines.map((line) => ({ program, args: line === '' ? [] : line.split(' '), runsSettings: false }));
const git = (...lines: string[]): ReadOnlyCommand[] =>
  reads('git', ...lines).map((each) => ({ ...each, runsSettings: true }));

/** No option of these writes, runs or connects. Left out on purpose: find, grep -r, diff (contents of secrets), tree -o, file -C. */
export const readOnlyCommands: readonly ReadOnlyCommand[] = [
  ...reads('cat', '**'),
  ...reads('du', '-sh', '-sh *'),
  ...reads('head', '**'),
  ...reads('ls', '**'),
  ...reads('pwd', ''),
  ...reads('stat', '**'),
  ...reads('tail', '**'),
  ...reads('wc', '**'),
  ...git('status', 'status --short', 'status --porcelain', 'status -s', 'status -sb'),
  ...git('log', 'log --oneline', 'log -n *', 'log --oneline -n *', 'log --stat'),
  ...git('branch', 'branch --show-current', 'diff --stat', 'diff --name-only', 'rev-parse HEAD'),
];

const alwaysAsk: readonly RuleDraft[] = [
  rule('ask', 'Installing packages', { by: 'effect', effects: ['install'] }),
  rule('ask', 'Using the network', { by: 'effect', effects: ['fetch'] }),
  rule('ask', 'Deleting whole folders', { by: 'risk', codes: ['recursive_delete'] }),
  rule('ask', 'Configuration that runs something later', { by: 'risk', codes: ['agent_config'] }),
  rule('ask', 'Secret files', { by: 'risk', codes: ['secret', 'secret_shaped'] }),
  rule('ask', 'Outside the workspace', { by: 'risk', codes: ['outside', 'redirect_outside'] }),
  rule('ask', 'More rights than yours', { by: 'risk', codes: ['privileged'] }),
];

const reading: readonly RuleDraft[] = [
  rule('allow', 'Reading and searching', { by: 'effect', effects: ['read', 'search'] }),
  ...readOnlyCommands.map(({ program, args }) =>
    rule('allow', 'Commands that only read', { by: 'command', program, args: [...args] }),
  ),
];

const writing = rule('allow', 'Edits inside the workspace', { by: 'path', glob: '**', effects: ['write'] });

/** Each with the always-ask list; `custom` adds nothing to it. */
export const presetRules: Readonly<Record<Preset, readonly RuleDraft[]>> = {
  careful: [...alwaysAsk, ...reading],
  edits: [...alwaysAsk, ...reading, writing],
  custom: alwaysAsk,
};
