/**
 * Every rule of the review as data: its group, what a finding weighs, why it matters, what to check next. The files
 * beside this one say where a rule fits. A test holds every rule to at least one finding of the corpus.
 */
import type { FindingGroup, Severity } from '#protocol/methods/trust.ts';

interface Rule {
  readonly group: FindingGroup;
  /** Where the place does not make it weigh more or less. */
  readonly severity: Severity;
  readonly why: string;
  readonly next: string;
}

const look = 'Read the line. Accept it only if you or someone you trust wrote it for this project.';
const command = 'Read the command and every script it names. Remove it if nobody here needs it.';

export const rules = {
  'agent.hook': {
    group: 'agent_config',
    severity: 'warn',
    why: 'An agent runs this command by itself, at its start or around its actions, without asking.',
    next: command,
  },
  'agent.mcp': {
    group: 'agent_config',
    severity: 'warn',
    why: 'An agent starts or contacts this MCP server with the session; its program runs as you, its words reach the model.',
    next: 'Check where the program or address comes from, and that its version is fixed.',
  },
  'agent.command': {
    group: 'agent_config',
    severity: 'warn',
    why: 'An agent or editor runs this program by itself, for a key, a status line or a sign-in.',
    next: command,
  },
  'agent.plugin': {
    group: 'agent_config',
    severity: 'warn',
    why: 'An agent loads this file or package as code when it starts here.',
    next: 'Read the file, or the package it names.',
  },
  'agent.env': {
    group: 'agent_config',
    severity: 'block',
    why: 'This variable sends an agent’s traffic and keys to another address, or makes its programs load other code.',
    next: 'Remove it, unless this address is yours. If an agent ran here already, renew its key.',
  },
  'agent.permission': {
    group: 'agent_config',
    severity: 'block',
    why: 'This lets an agent act without asking, so no action of it would wait for you.',
    next: 'Remove it; permissions belong in your own settings, not in a folder.',
  },
  'agent.allows': {
    group: 'agent_config',
    severity: 'warn',
    why: 'This allows an agent whole kinds of actions in advance.',
    next: look,
  },
  'agent.unreadable': {
    group: 'agent_config',
    severity: 'warn',
    why: 'This configuration could not be read to its end, and a more forgiving reader may find more in it.',
    next: 'Open the file, and mend or remove it.',
  },
  'editor.task': {
    group: 'agent_config',
    severity: 'warn',
    why: 'An editor runs this when the folder is opened.',
    next: command,
  },
  'editor.program': {
    group: 'agent_config',
    severity: 'warn',
    why: 'This setting makes an editor run a program that lies in this folder.',
    next: look,
  },
  'shell.envrc': {
    group: 'agent_config',
    severity: 'warn',
    why: 'With direnv, a shell that enters the folder runs this file.',
    next: 'Read the whole file before you allow it in direnv.',
  },
  'container.command': {
    group: 'agent_config',
    severity: 'warn',
    why: 'Opening the folder in a container runs this, on your own machine or with its rights.',
    next: command,
  },
  'git.hook': {
    group: 'git',
    severity: 'warn',
    why: 'Git runs this file by itself when something is committed, checked out or pushed.',
    next: 'Read the file. Hooks are never cloned: somebody or something put it there.',
  },
  'git.runs': {
    group: 'git',
    severity: 'warn',
    why: 'Git runs this program, also for plain reading such as status or diff.',
    next: 'See "git config --list --show-origin", and remove the key if it is not yours.',
  },
  'git.include': {
    group: 'git',
    severity: 'warn',
    why: 'Git reads further settings from this file, which may name programs to run.',
    next: 'Look at the file it names.',
  },
  'git.submodule': {
    group: 'git',
    severity: 'warn',
    why: 'Cloning this submodule contacts an address without protection, or one that git may take for a command.',
    next: 'Check the address before you update submodules.',
  },
  'execution.lifecycle': {
    group: 'execution',
    severity: 'warn',
    why: 'Installing the dependencies here runs this script without asking.',
    next: 'Read the script, or install with --ignore-scripts.',
  },
  'execution.install_hook': {
    group: 'execution',
    severity: 'warn',
    why: 'The package manager runs this, or loads it as code, whenever it is used here.',
    next: look,
  },
  'execution.download': {
    group: 'execution',
    severity: 'block',
    why: 'This fetches a program from the network and runs it unseen.',
    next: 'Fetch it yourself, read it, and fix its version and hash.',
  },
  'execution.encoded': {
    group: 'execution',
    severity: 'block',
    why: 'This runs something that is written so that nobody can read it.',
    next: 'Decode it without running it. There is rarely an honest reason for this.',
  },
  'execution.inline': {
    group: 'execution',
    severity: 'warn',
    why: 'This runs code given on the command line, where a review easily misses it.',
    next: look,
  },
  'text.injection': {
    group: 'text',
    severity: 'warn',
    why: 'This speaks to an agent, not to you: it asks it to drop its instructions, to hide something or to send data out.',
    next: 'Read the text around it. Agents that work here may follow it.',
  },
  'text.bidi': {
    group: 'text',
    severity: 'warn',
    why: 'Characters here change the direction of writing, so that the text reads otherwise than it runs.',
    next: 'Look at the escapes shown, and remove them.',
  },
  'text.hidden': {
    group: 'text',
    severity: 'warn',
    why: 'Characters here are drawn as nothing, and can carry words that only a program or a model reads.',
    next: 'Look at the escapes shown, and remove them.',
  },
  'secrets.public': {
    group: 'secrets',
    severity: 'warn',
    why: 'A variable with this prefix is built into what browsers download, and its name says that it is a secret.',
    next: 'Rename it without the prefix, and renew the secret if it was ever built.',
  },
  'secrets.fallback': {
    group: 'secrets',
    severity: 'warn',
    why: 'A secret is written here as the value for when none is set, so that everyone knows it.',
    next: 'Fail without the variable, and renew the secret.',
  },
  'secrets.rows': {
    group: 'secrets',
    severity: 'warn',
    why: 'This lets anyone who can reach the database read or change every row.',
    next: 'Write a policy that names who may, before there is real data.',
  },
  'secrets.bucket': {
    group: 'secrets',
    severity: 'warn',
    why: 'What is stored here can be read by everyone.',
    next: 'Make it private, unless all of it is meant to be public.',
  },
  'secrets.webhook': {
    group: 'secrets',
    severity: 'warn',
    why: 'This seems to take a webhook without checking who sent it.',
    next: 'Check the sender’s signature before the body is used.',
  },
  'links.outside': {
    group: 'links',
    severity: 'warn',
    why: 'This link leads out of the folder. An agent that follows it works on files you did not open.',
    next: 'Remove it, or open the folder it leads to instead.',
  },
  'links.in_config': {
    group: 'links',
    severity: 'warn',
    why: 'Configuration lies behind a link: what it leads to was not reviewed, and can change unseen.',
    next: 'Put a plain file in its place.',
  },
  'scan.truncated': {
    group: 'scan',
    severity: 'warn',
    why: 'The folder is larger than one review looks at, so something may have been missed.',
    next: 'Open a smaller part of it, or accept that the rest was not looked at.',
  },
  'scan.unread': {
    group: 'scan',
    severity: 'warn',
    why: 'This file configures something, and could not be read to its end.',
    next: 'Look at the file yourself.',
  },
  'malware.detected': {
    group: 'malware',
    severity: 'block',
    why: 'The malware scanner on this machine names this file.',
    next: 'Do not open or run anything here. Delete the file, and find out where it came from.',
  },
} as const satisfies Record<string, Rule>;

export type RuleId = keyof typeof rules;

/** Where a rule fits. `exact` is all that it is about, unshortened: the finding is the same while these words are. */
export interface Hit {
  readonly rule: RuleId;
  /** From 1; null for the file as a whole. */
  readonly line: number | null;
  readonly exact: string;
  /** Instead of `exact`, where that must not be shown. */
  readonly evidence?: string;
  readonly severity?: Severity;
}
