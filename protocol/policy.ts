/**
 * The rule language as data (R-15 to R-18): what a rule says, what a request offers it, and the presets' shape. The rule
 * not to break: a rule that cannot be compared with a request does not match it. Evaluation is `bridge/approvals/policy.ts`;
 * the app edits and shows the same data.
 */
import { limits } from './limits.ts';
import { count, list, name, sha256, text, time, uuid, z } from './schema.ts';

export const ruleEffects = ['reject', 'ask', 'allow'] as const;
export type RuleEffect = (typeof ruleEffects)[number];

/** What is done, finer than the kind of an action: a tool of an agent and a served effect that do the same are the same. */
export const policyEffects = [
  'read',
  'search',
  'write',
  'delete',
  'move',
  'execute',
  'install',
  'fetch',
  'other',
] as const;
export type PolicyEffect = (typeof policyEffects)[number];

/** Which requests a rule is about. Words and globs: `*` inside a word stands for any characters of that word. */
export const ruleMatch = z.discriminatedUnion('by', [
  /** Only the same bytes: digest of the action with nonce, turn and conversation left out. */
  z.strictObject({ by: z.literal('exact'), digest: sha256 }),
  /**
   * A simple command by its program and arguments as parsed. A word `*` is any one argument, a last word `**` any
   * further ones. Never matches operators, substitutions, line breaks, trampolines, or what cannot be inspected.
   */
  z.strictObject({ by: z.literal('command'), program: name(500), args: list(text(1000), 50) }),
  /** The exact text of a command line, compound or not; in the same directory. */
  z.strictObject({ by: z.literal('text'), text: name(limits.ruleTextUnits), cwd: text(limits.pathBytes) }),
  /** Paths inside the workspace, relative; `**` crosses folders. */
  z.strictObject({
    by: z.literal('path'),
    glob: name(1000),
    effects: list(z.enum(['read', 'search', 'write', 'delete', 'move']), 5).check(z.minLength(1)),
  }),
  /** A tool by its exact name, as the agent's own input or the MCP server names it. */
  z.strictObject({ by: z.literal('tool'), tool: name(200), server: z.optional(text(200)) }),
  z.strictObject({ by: z.literal('effect'), effects: list(z.enum(policyEffects), 9).check(z.minLength(1)) }),
  /** Everything with one of these risk notes; not for `allow`. */
  z.strictObject({ by: z.literal('risk'), codes: list(text(64), 50).check(z.minLength(1)) }),
]);
export type RuleMatch = z.infer<typeof ruleMatch>;

/** What a rule saw when it was made; another one asks again. */
export const ruleBinding = z.strictObject({
  executable: z.optional(z.strictObject({ path: text(limits.pathBytes), sha256 })),
  mcpSha256: z.optional(sha256),
});

/** A rule without its history: what a person writes, a project suggests, and `policy.put` takes. */
export const ruleDraft = z.strictObject({
  effect: z.enum(ruleEffects),
  /** A name for people; optional. */
  title: z.optional(text(200)),
  /** Null: any agent; any workspace. */
  agentId: z.nullable(text(100)),
  workspaceId: z.nullable(uuid),
  match: ruleMatch,
  bound: z.optional(ruleBinding),
  expiresAt: z.nullable(time),
  /** Uses left; null without an end. */
  uses: z.nullable(count),
  /** At most so many matches in any span of that length; beyond it the request is asked. */
  limit: z.nullable(z.strictObject({ count: count.check(z.positive()), perMs: count.check(z.positive()) })),
});
export type RuleDraft = z.infer<typeof ruleDraft>;

/** A file of rules, as `bridge policy set` and a project's suggestions have it; what is left out is without bound. */
export const ruleFile = z.strictObject({
  rules: list(
    z.strictObject({
      ...ruleDraft.shape,
      agentId: z._default(ruleDraft.shape.agentId, null),
      workspaceId: z._default(ruleDraft.shape.workspaceId, null),
      expiresAt: z._default(ruleDraft.shape.expiresAt, null),
      uses: z._default(ruleDraft.shape.uses, null),
      limit: z._default(ruleDraft.shape.limit, null),
    }),
    limits.rules,
  ),
});

export const ruleSources = ['preset', 'remembered', 'operator'] as const;
export type RuleSource = (typeof ruleSources)[number];
export const presets = ['careful', 'edits', 'custom'] as const;
export type Preset = (typeof presets)[number];

export const ruleView = z.strictObject({
  ...ruleDraft.shape,
  ruleId: uuid,
  source: z.enum(ruleSources),
  enabled: z.boolean(),
  /** The rule in plain words, by the bridge. */
  sentence: text(1000),
  /** Empty where it is for any workspace. */
  workspacePath: text(limits.pathBytes),
  createdAt: time,
  hits: count,
  lastHitAt: z.nullable(time),
});
export type RuleView = z.infer<typeof ruleView>;

/** A scope that "always" could save, the narrowest first, with what it would and would not match. */
export const ruleScope = z.strictObject({
  draft: ruleDraft,
  sentence: text(1000),
  matches: list(text(500), 5),
  misses: list(text(500), 5),
});
export type RuleScope = z.infer<typeof ruleScope>;

/** A rule that nearly decided, and what kept it from it. */
export const nearRule = z.strictObject({ ruleId: uuid, sentence: text(1000), why: text(500) });
export const policyAnswer = z.strictObject({
  verdict: z.enum(['allow', 'reject', 'ask']),
  /** "Asked because “git * in this workspace” would match but the command has &&". */
  because: text(1000),
  ruleId: z.nullable(uuid),
  near: list(nearRule, 10),
});
export type PolicyAnswer = z.infer<typeof policyAnswer>;

/** A made-up request, for trying rules: the same facts are established for it as for a real one. */
export const policySample = z.strictObject({
  agentId: z.optional(text(100)),
  workspaceId: z.optional(uuid),
  /** Exactly one of these. */
  command: z.optional(name(limits.ruleTextUnits)),
  argv: z.optional(list(text(4000), 200).check(z.minLength(1))),
  path: z.optional(name(limits.pathBytes)),
  tool: z.optional(name(200)),
  /** For `path`; `write` when absent. */
  effect: z.optional(z.enum(policyEffects)),
  cwd: z.optional(text(limits.pathBytes)),
  /** As if the folder's configuration were accepted; the real state when absent. */
  trusted: z.optional(z.boolean()),
});
export type PolicySample = z.infer<typeof policySample>;
