/** policy.*: the rules that decide without asking, trying them, and what projects suggest. */
import { commandReading } from '../events.ts';
import { limits } from '../limits.ts';
import { policyAnswer, policySample, presets, ruleDraft, ruleScope, ruleView } from '../policy.ts';
import { count, list, sha256, text, uuid, z } from '../schema.ts';
import type { Method } from './method.ts';

export const policyMethods = {
  /** Removes a rule, or turns it off and on; a policy receipt each time. Those of a preset are only turned off. */
  'policy.forget': {
    params: z.strictObject({ ruleId: uuid, change: z.enum(['remove', 'disable', 'enable']) }),
    result: z.strictObject({ receiptId: uuid }),
    capability: 'policy',
    mutates: true,
    errors: ['unknown_rule', 'invalid_rule'],
  },
  'policy.get': {
    params: z.strictObject({}),
    result: z.strictObject({
      generation: count,
      digest: sha256,
      preset: z.enum(presets),
      rules: list(ruleView, limits.rules),
    }),
    capability: 'policy',
    mutates: false,
    errors: [],
  },
  /** Replaces every rule of the operator's by these in one step: the hot reload of a policy file. Remembered ones stay. */
  'policy.load': {
    params: z.strictObject({ rules: list(ruleDraft, limits.rules) }),
    result: z.strictObject({ receiptId: uuid, rules: count }),
    capability: 'policy',
    mutates: true,
    errors: ['invalid_rule'],
  },
  /** Replaces the rules of the former preset by those of another; the others stay. */
  'policy.preset': {
    params: z.strictObject({ preset: z.enum(presets) }),
    result: z.strictObject({ receiptId: uuid }),
    capability: 'policy',
    mutates: true,
    errors: [],
  },
  /** What each preset consists of, to be read before switching. */
  'policy.presets': {
    params: z.strictObject({}),
    result: z.strictObject({
      presets: list(
        z.strictObject({
          preset: z.enum(presets),
          rules: list(z.strictObject({ draft: ruleDraft, sentence: text(1000) }), limits.rules),
        }),
        presets.length,
      ),
    }),
    capability: 'policy',
    mutates: false,
    errors: [],
  },
  /** What a rule would say before it is saved; with `approvalId`, whether it matches that request. */
  'policy.preview': {
    params: z.strictObject({ draft: ruleDraft, approvalId: z.optional(uuid) }),
    result: z.strictObject({
      scope: ruleScope,
      /** Null where it may be saved. */
      problem: z.nullable(text(500)),
      matchesRequest: z.nullable(z.boolean()),
    }),
    capability: 'policy',
    mutates: false,
    errors: ['unknown_approval'],
  },
  /** A new rule, or another text for one of the operator's. */
  'policy.put': {
    params: z.strictObject({ draft: ruleDraft, ruleId: z.optional(uuid) }),
    result: z.strictObject({ ruleId: uuid, receiptId: uuid }),
    capability: 'policy',
    mutates: true,
    errors: ['unknown_rule', 'invalid_rule'],
  },
  /** What a workspace suggests in `.countersign/rules.json`. Shown; never acts by itself. */
  'policy.suggestions': {
    params: z.strictObject({ workspaceId: uuid }),
    result: z.strictObject({
      path: text(limits.pathBytes),
      rules: list(z.strictObject({ draft: ruleDraft, sentence: text(1000), saved: z.boolean() }), 50),
      /** Why the file says nothing, where it is there and cannot be read. */
      problem: z.nullable(text(500)),
    }),
    capability: 'policy',
    mutates: false,
    errors: ['workspace_unknown'],
  },
  /** Tries a made-up request on the rules, or on given ones instead of them. */
  'policy.test': {
    params: z.strictObject({ sample: policySample, rules: z.optional(list(ruleDraft, limits.rules)) }),
    result: z.strictObject({
      ...policyAnswer.shape,
      reading: z.optional(commandReading),
      risks: list(z.strictObject({ code: text(64), sentence: text(500) }), 50),
    }),
    capability: 'policy',
    mutates: false,
    errors: ['workspace_unknown'],
  },
} as const satisfies Record<string, Method>;
