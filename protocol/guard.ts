/**
 * A schema as a plain predicate: the same answer as zod, without the copy and the issues that make zod slow by the
 * thousand. Compiled from the schema itself, so that the two cannot drift apart; what is not known here is asked of
 * zod. Used by the verifier, which explains a refusal with zod afterwards.
 */
import { z } from './schema.ts';

type Guard = (value: unknown) => boolean;

const stringChecks = (checks: readonly z.core.$ZodCheck<never>[] | undefined): Guard[] | null => {
  const guards: Guard[] = [];
  for (const { _zod } of checks ?? []) {
    const def = _zod.def as z.core.$ZodChecks['_zod']['def'];
    if (def.check === 'max_length') guards.push((value) => (value as string).length <= def.maximum);
    else if (def.check === 'min_length') guards.push((value) => (value as string).length >= def.minimum);
    else if (def.check === 'string_format' && 'pattern' in def && def.pattern instanceof RegExp) {
      const { pattern } = def;
      if (pattern.global || pattern.sticky) return null; // such a pattern remembers where it was
      guards.push((value) => pattern.test(value as string));
    } else return null;
  }
  return guards;
};

const every = (is: Guard, guards: readonly Guard[]): Guard => {
  const [first, second] = guards;
  if (first === undefined) return is;
  if (second === undefined) return (value) => is(value) && first(value);
  return (value) => is(value) && guards.every((guard) => guard(value));
};

const isObject: Guard = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

const object = (shape: Readonly<Record<string, z.core.$ZodType>>): Guard => {
  const names = Object.keys(shape);
  const guards = Object.values(shape).map(guardOf);
  return (value) => {
    if (!isObject(value)) return false;
    const members = value as Record<string, unknown>;
    for (let index = 0; index < names.length; index += 1) {
      if (guards[index]?.(members[names[index] ?? '']) !== true) return false;
    }
    return true;
  };
};

/** For JSON values: `undefined` is what is absent. */
export const guardOf = (schema: z.core.$ZodType): Guard => {
  const asked: Guard = (value) => z.safeParse(schema, value).success;
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const checks = def.checks as readonly z.core.$ZodCheck<never>[] | undefined;
  switch (def.type) {
    case 'object': {
      if (def.catchall !== undefined || (checks?.length ?? 0) > 0) return asked;
      return object(def.shape);
    }
    case 'string': {
      const guards = 'format' in def ? null : stringChecks(checks);
      return guards === null ? asked : every((value) => typeof value === 'string', guards);
    }
    case 'array': {
      const [item, guards] = [guardOf(def.element), stringChecks(checks)]; // an array's length is checked like a string's
      return guards === null ? asked : every((value) => Array.isArray(value) && value.every(item), guards);
    }
    case 'nullable':
    case 'optional': {
      const [inner, empty] = [guardOf(def.innerType), def.type === 'nullable' ? null : undefined];
      return (value) => value === empty || inner(value);
    }
    case 'enum': {
      const values = new Set<unknown>(Object.values(def.entries));
      return (value) => values.has(value);
    }
    case 'literal': {
      const values = new Set<unknown>(def.values);
      return (value) => values.has(value);
    }
    case 'number': {
      const least = checks?.length === 1 ? (checks[0]?._zod.def as z.core.$ZodChecks['_zod']['def']) : undefined;
      if (!('format' in def) || def.format !== 'safeint' || least?.check !== 'greater_than' || !least.inclusive)
        return asked;
      const minimum = Number(least.value);
      return (value) => Number.isSafeInteger(value) && (value as number) >= minimum;
    }
    default:
      return asked;
  }
};
