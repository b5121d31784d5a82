/**
 * Reads what an agent declares about its session: modes, models and config options, in their current and their legacy
 * shapes, and the options of a permission. Pure; skips single entries it cannot read.
 * Used by translate.ts and session.ts.
 */
import type { AgentOption, ApprovalOption, ModeInfo } from '#protocol/events.ts';
import { z } from '#protocol/schema.ts';

const nullable = <T extends z.core.$ZodType>(schema: T) => z.optional(z.nullable(schema));
const named = { name: nullable(z.string()), description: nullable(z.string()) };
const choice = z.looseObject({ value: z.string(), ...named });
const group = z.looseObject({ options: z.array(z.unknown()) });
const configOption = z.looseObject({
  id: z.string(),
  ...named,
  category: nullable(z.string()),
  type: nullable(z.string()),
  currentValue: z.union([z.string(), z.boolean()]),
  options: nullable(z.array(z.unknown())),
});
const modes = z.looseObject({ currentModeId: z.string(), availableModes: z.array(z.unknown()) });
const mode = z.looseObject({ id: z.string(), ...named });
const models = z.looseObject({ currentModelId: z.string(), availableModels: z.array(z.unknown()) });
const model = z.looseObject({ modelId: z.string(), ...named });
const permissionOption = z.looseObject({
  optionId: z.string(),
  name: nullable(z.string()),
  kind: nullable(z.unknown()),
});

const readAll = <T extends z.core.$ZodType, R>(
  schema: T,
  values: readonly unknown[],
  read: (value: z.infer<T>) => R,
): R[] =>
  values.flatMap((value) => {
    const parsed = z.safeParse(schema, value);
    return parsed.success ? [read(parsed.data)] : [];
  });
const about = (
  described: { name?: string | null | undefined; description?: string | null | undefined },
  id: string,
) => ({
  name: described.name ?? id,
  ...(typeof described.description === 'string' ? { description: described.description } : {}),
});

const readChoices = (values: readonly unknown[]): AgentOption['choices'] =>
  values.flatMap((value) => {
    const nested = z.safeParse(group, value);
    if (nested.success) return readChoices(nested.data.options);
    return readAll(choice, [value], (found) => ({ value: found.value, ...about(found, found.value) }));
  });

export const configOptions = (values: unknown): AgentOption[] => {
  if (!Array.isArray(values)) return [];
  return readAll(configOption, values, (option) => ({
    id: option.id,
    name: option.name ?? option.id,
    ...(typeof option.category === 'string' ? { category: option.category } : {}),
    type: typeof option.currentValue === 'boolean' ? 'boolean' : 'select',
    value: String(option.currentValue),
    choices: readChoices(option.options ?? []),
  }));
};

/** The option that is the permission mode, or the model: by its category, which the protocol reserves for that. */
export const modeOption = (options: readonly AgentOption[]): AgentOption | null =>
  options.find((option) => option.category === 'mode') ?? null;
export const modelOption = (options: readonly AgentOption[]): AgentOption | null =>
  options.find((option) => option.category === 'model') ?? null;

const asModes = (option: AgentOption): ModeInfo[] =>
  option.choices.map(({ value, name, description }) => ({
    id: value,
    name,
    ...(description === undefined ? {} : { description }),
  }));

export interface Declared {
  readonly modes: readonly ModeInfo[];
  readonly modeId: string | null;
  readonly models: readonly ModeInfo[];
  readonly modelId: string | null;
  readonly options: readonly AgentOption[];
}

/** From the answer to session/new, load or resume, which may be null. */
export const declared = (answer: unknown): Declared => {
  const fields = typeof answer === 'object' && answer !== null ? (answer as Record<string, unknown>) : {};
  const options = configOptions(fields['configOptions']);
  const own = z.safeParse(modes, fields['modes']);
  const legacy = z.safeParse(models, fields['models']);
  const modeFrom = modeOption(options);
  const modelFrom = modelOption(options);
  return {
    options,
    modes: own.success
      ? readAll(mode, own.data.availableModes, (found) => ({ id: found.id, ...about(found, found.id) }))
      : modeFrom === null
        ? []
        : asModes(modeFrom),
    modeId: own.success ? own.data.currentModeId : (modeFrom?.value ?? null),
    models:
      modelFrom !== null
        ? asModes(modelFrom)
        : legacy.success
          ? readAll(model, legacy.data.availableModels, (found) => ({
              id: found.modelId,
              ...about(found, found.modelId),
            }))
          : [],
    modelId: modelFrom?.value ?? (legacy.success ? legacy.data.currentModelId : null),
  };
};

/**
 * Options of a permission as the operator may see them. `allow_always` is left out: it would let the agent act unasked
 * later, where no receipt covers it (G-21). Unknown kinds stay, as `other`. Where two options mean the same, those in
 * `prefer` come first; a deny of this kind may end the whole turn for some agents, so the catalogue says which.
 */
export const permissionOptions = (values: unknown, prefer: readonly string[]): ApprovalOption[] => {
  if (!Array.isArray(values)) return [];
  const read = readAll(permissionOption, values, (option): ApprovalOption => {
    const kind = typeof option.kind === 'string' ? option.kind : String(option.kind ?? 'unknown');
    return {
      id: option.optionId,
      name: option.name ?? option.optionId,
      kind: kind.slice(0, 100),
      meaning: meaningOf(kind),
    };
  });
  const rank = (option: ApprovalOption): number =>
    prefer.includes(option.id) ? prefer.indexOf(option.id) : prefer.length + (option.kind === 'reject_always' ? 1 : 0);
  return read
    .filter((option) => option.kind !== 'allow_always')
    .sort((a, b) => (a.meaning === 'deny' && b.meaning === 'deny' ? rank(a) - rank(b) : 0));
};

const meaningOf = (kind: string): ApprovalOption['meaning'] => {
  if (kind === 'allow_once') return 'allow';
  return kind === 'reject_once' || kind === 'reject_always' ? 'deny' : 'other';
};
