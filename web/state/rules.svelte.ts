/** The rules of the bridge as one sees and changes them; each change is an operation with a receipt of its own. */
import type { CommandReading } from '#protocol/events.ts';
import type { Answer } from '#protocol/methods.ts';
import { ruleEffects, type PolicySample, type Preset, type RuleDraft, type RuleView } from '#protocol/policy.ts';
import type { App } from './app.svelte.ts';
import type { Failure, Outcome } from './contract.ts';
import { Listing, type Listed } from './list.svelte.ts';

/** What was just removed, so that it can be put again. */
export interface RemovedRule {
  readonly draft: RuleDraft;
  readonly sentence: string;
  readonly enabled: boolean;
}

/** A rule without its history, exactly as `policy.put` takes it. */
export const draftOf = (rule: RuleDraft): RuleDraft => ({
  effect: rule.effect,
  ...(rule.title === undefined ? {} : { title: rule.title }),
  agentId: rule.agentId,
  workspaceId: rule.workspaceId,
  match: rule.match,
  ...(rule.bound === undefined ? {} : { bound: rule.bound }),
  expiresAt: rule.expiresAt,
  uses: rule.uses,
  limit: rule.limit,
});

/** A new one, nothing written in it yet. */
export const emptyDraft: RuleDraft = {
  effect: 'allow',
  agentId: null,
  workspaceId: null,
  match: { by: 'command', program: '', args: [] },
  expiresAt: null,
  uses: null,
  limit: null,
};

const pathEffects = ['read', 'search', 'write', 'delete', 'move'] as const;

const matchFrom = (sample: PolicySample, reading: CommandReading | undefined, folder: string): RuleDraft['match'] => {
  if (sample.path !== undefined) {
    const effect = pathEffects.find((one) => one === sample.effect) ?? 'write';
    return { by: 'path', glob: sample.path, effects: [effect] };
  }
  if (sample.tool !== undefined) return { by: 'tool', tool: sample.tool };
  const program = reading?.simple === true ? reading.programs[0] : undefined;
  const args = program?.args.filter((word): word is string => word !== null) ?? [];
  // Only what was read to its last word may be matched by its words.
  if (program !== undefined && program.name !== null && args.length === program.args.length)
    return { by: 'command', program: program.name, args: args.slice(0, 50) };
  return { by: 'text', text: sample.command ?? '', cwd: sample.cwd ?? folder };
};

/** The narrowest rule that is about what was tried; `folder` is where a command without a directory would run. */
export const draftFrom = (sample: PolicySample, reading: CommandReading | undefined, folder: string): RuleDraft => ({
  ...emptyDraft,
  agentId: sample.agentId ?? null,
  workspaceId: sample.workspaceId ?? null,
  match: matchFrom(sample, reading, folder),
});

export class Rules {
  #app: Pick<App, 'call' | 'tell'>;
  readonly #list = new Listing<RuleView>(() => this.#load());
  /** Null until loaded. */
  preset = $state<Preset | null>(null);
  removed = $state.raw<RemovedRule | null>(null);

  constructor(app: Pick<App, 'call' | 'tell'>) {
    this.#app = app;
  }

  get items(): readonly RuleView[] {
    return this.#list.items;
  }
  get loaded(): boolean {
    return this.#list.loaded;
  }
  get failure(): Failure | null {
    return this.#list.failure;
  }
  /** By what they do, in the order they are looked at. */
  readonly groups = $derived.by(() =>
    ruleEffects.map((effect) => ({ effect, rules: this.items.filter((rule) => rule.effect === effect) })),
  );

  want(): void {
    this.#list.want();
  }
  invalidate(): void {
    this.#list.invalidate();
  }
  reload(): Promise<void> {
    return this.#list.reload();
  }
  clear(): void {
    this.#list.clear();
    this.preset = null;
    this.removed = null;
  }

  async turn(rule: RuleView, on: boolean): Promise<void> {
    await this.#app.tell('policy.forget', { ruleId: rule.ruleId, change: on ? 'enable' : 'disable' });
    await this.reload();
  }

  async remove(rule: RuleView): Promise<void> {
    const outcome = await this.#app.tell('policy.forget', { ruleId: rule.ruleId, change: 'remove' });
    if (outcome.ok) this.removed = { draft: draftOf(rule), sentence: rule.sentence, enabled: rule.enabled };
    await this.reload();
  }

  /** Puts what was removed last again, as a rule of the operator; its count of uses begins anew. */
  async putBack(): Promise<void> {
    const { removed } = this;
    if (removed === null) return;
    this.removed = null;
    const outcome = await this.#app.tell('policy.put', { draft: removed.draft });
    if (outcome.ok && !removed.enabled)
      await this.#app.tell('policy.forget', { ruleId: outcome.value.ruleId, change: 'disable' });
    if (!outcome.ok) this.removed = removed;
    await this.reload();
  }

  async put(draft: RuleDraft, ruleId?: string): Promise<Outcome<Answer<'policy.put'>>> {
    const outcome = await this.#app.call('policy.put', { draft, ...(ruleId === undefined ? {} : { ruleId }) });
    if (outcome.ok) await this.reload();
    return outcome;
  }

  presets(): Promise<Outcome<Answer<'policy.presets'>>> {
    return this.#app.call('policy.presets', {});
  }
  async usePreset(preset: Preset): Promise<Outcome<Answer<'policy.preset'>>> {
    const outcome = await this.#app.call('policy.preset', { preset });
    if (outcome.ok) await this.reload();
    return outcome;
  }

  test(sample: PolicySample): Promise<Outcome<Answer<'policy.test'>>> {
    return this.#app.call('policy.test', { sample });
  }
  suggestions(workspaceId: string): Promise<Outcome<Answer<'policy.suggestions'>>> {
    return this.#app.call('policy.suggestions', { workspaceId });
  }

  async #load(): Promise<Outcome<Listed<RuleView>>> {
    const answer = await this.#app.call('policy.get', {});
    if (!answer.ok) return answer;
    this.preset = answer.value.preset;
    return { ok: true, value: { items: answer.value.rules, more: false } };
  }
}
