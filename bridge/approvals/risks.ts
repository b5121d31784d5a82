/**
 * Risk notes as a closed list (R-02), and the patterns some of them come from. The rule not to break: a sentence is the
 * bridge's own and never repeats a secret. Used by `facts.ts`. Pure.
 */
import type { ApprovalFacts } from '#protocol/events.ts';
import type { Read } from './shell/reading.ts';

export type Risk = ApprovalFacts['risks'][number];

const sentences = {
  outside: ['warn', 'Reaches outside the workspace.'],
  secret: ['stop', 'Touches a file that is kept secret.'],
  agent_config: ['stop', 'Touches files that decide what an agent, an editor, git or a shell runs later.'],
  invisible: ['warn', 'Contains characters that cannot be seen or that reorder text; they are shown as escapes.'],
  hidden_space: ['warn', 'Contains a long run of spaces that could push something out of sight.'],
  long: ['note', 'Is very long; read it to its end.'],
  not_all_shown: ['stop', 'Holds more than is listed here; the whole of it is in the raw input.'],
  program_name: ['warn', 'The name of the program has letters outside ASCII, and may look like another.'],
  environment: ['warn', 'Changes environment variables that decide which code runs.'],
  unannounced: ['warn', 'The agent asked without announcing what it is about to do.'],
  uninspectable: ['warn', 'What this does, or a part of it, could not be established: uninspectable.'],
  as_worded: ['warn', 'The agent gave no input for this; the command is shown as the agent words it.'],
  cut_by_agent: ['stop', 'The agent shows only the beginning of this command; the rest of it is not known.'],
  shell_operators: ['note', 'The shell acts on operators.'],
  substitution: ['note', 'Puts the output of other commands into this one.'],
  redirect_outside: ['warn', 'Redirects to or from outside the workspace, or a place only known when it runs.'],
  recursive_delete: ['warn', 'Deletes folders with all that is in them, or whatever matches.'],
  install: ['warn', 'Installs or runs packages from a registry.'],
  network: ['note', 'Uses the network.'],
  private_host: ['warn', 'Talks to this machine, its own network, or the metadata service of a cloud.'],
  secret_shaped: ['warn', 'Contains something shaped like a key, token or password.'],
  privileged: ['stop', 'Runs with the rights of another user, such as root.'],
  moves_target: ['warn', 'An option moves what it acts on to somewhere outside the workspace, or unknown.'],
  program_in_workspace: ['note', 'Runs a program that lies in the workspace.'],
  trampoline: ['note', 'Runs another program through one or more others.'],
} as const satisfies Record<string, readonly [Risk['level'], string]>;
export type RiskCode = keyof typeof sentences;

export const risk = (code: RiskCode, sentence: string = sentences[code][1]): Risk => ({
  code,
  level: sentences[code][0],
  sentence,
});

/** Operators, redirections and substitutions by their signs, each once. */
export const signsOf = ({ operators, redirections, substitutions }: Read['reading']): string[] => [
  ...new Set([
    ...operators.map((each) => (each === 'newline' ? 'line break' : each)),
    ...redirections.map(({ operator }) => operator),
    ...(substitutions.length > 0 ? ['$(…)'] : []),
  ]),
];

/** What the reading of a command says, as codes. */
export const codesOf = ({ reading, notes }: Read): RiskCode[] => [
  ...notes,
  ...(reading.substitutions.length > 0 ? (['substitution'] as const) : []),
  ...(reading.install === undefined ? [] : (['install'] as const)),
  ...(reading.programs.some(({ via }) => via.length > 0) ? (['trampoline'] as const) : []),
  ...(reading.uninspectable.length > 0 ? (['uninspectable'] as const) : []),
];

/**
 * Files that make an agent, an editor, git or a shell run something: writing them is a way out of every later question
 * (T40). Case does not matter: it does not to some disks.
 */
export const agentConfiguration = new RegExp(
  `(^|/)(${[
    '\\.(claude|codex|gemini|qwen|kimi|kimi-code|pi|opencode|cursor|copilot|continue|windsurf|kiro|cline|roo|aider|goose|amp|factory|zed)',
    '\\.(vscode|idea|fleet|devcontainer|husky|envrc|direnv)|\\.(mcp|claude)\\.json|mcp\\.json|opencode\\.jsonc?',
    '\\.aider\\.conf\\.yml|\\.cursorrules|\\.clinerules|\\.roorules|\\.windsurfrules',
    '\\.git(/(hooks|config|config\\.worktree|info|modules))?|\\.git~?config|git~1|\\.gitmodules|\\.github/(copilot|hooks|workflows)',
    '\\.(npmrc|yarnrc(\\.yml)?|pnpmfile\\.c?js)|\\.pre-commit-config\\.yaml|lefthook\\.ya?ml',
    '\\.(exrc|vimrc|nvimrc|gdbinit|lldbinit|editrc|inputrc)|\\.(bash|zsh)(rc|env|_profile|_login|_logout|_aliases)|\\.zprofile|\\.zlogin|\\.profile|\\.kshrc',
    '\\.config/(fish|autostart|systemd|git|nvim|code|zed|opencode|countersign)|\\.ssh|Library/Launch(Agents|Daemons)|etc/cron[^/]*|crontab',
    '\\.countersign',
  ].join('|')})(/|$)`,
  'i',
);

const secretShapes = [
  /\b(AKIA|ASIA)[0-9A-Z]{16}\b/,
  /\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[\w-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|hf_[A-Za-z0-9]{30,})/,
  /\b(sk|rk|pk)[-_](live_|test_|ant-|proj-|or-)?[A-Za-z0-9_-]{20,}/,
  /\bxox[a-z]-[A-Za-z0-9-]{10,}/,
  /\bAIza[0-9A-Za-z_-]{35}\b/,
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY/,
  /\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}/,
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@'"]{0,200}:[^\s/@'"$]{3,200}@/i,
  /\b(authorization|x-api-key|private-token)["']?\s{0,5}[:=]\s{0,5}["']?(bearer |basic |token )?[A-Za-z0-9+/_=.-]{16,}/i,
];
/** True where a text holds something shaped like a secret. Linear in its length. */
export const hasSecretShape = (text: string): boolean => secretShapes.some((shape) => shape.test(text));
