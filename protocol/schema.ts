/** The vocabulary of every schema: zod/mini without its eval probe, exact objects, bounded strings. */
import * as z from 'zod/mini';
import { sha256Pattern, uuidPattern } from './ids.ts';

// A strict CSP reports zod's probe of `new Function` as a violation; this must run before the first schema.
z.config({ jitless: true });

export { z };

export const text = (maxUnits: number) => z.string().check(z.maxLength(maxUnits));
export const name = (maxUnits = 200) => z.string().check(z.minLength(1), z.maxLength(maxUnits));
export const count = z.int().check(z.nonnegative());
/** Milliseconds since the Unix epoch. */
export const time = count;
export const uuid = z.string().check(z.regex(uuidPattern));
export const sha256 = z.string().check(z.regex(sha256Pattern));
export const list = <T extends z.core.$ZodType>(item: T, maxItems: number) =>
  z.array(item).check(z.maxLength(maxItems));
export const base64url = (maxUnits: number) => z.string().check(z.regex(/^[A-Za-z0-9_-]+$/), z.maxLength(maxUnits));

/** The path of the first issue and its code, never the value: `params.items[2].name: too_big`. */
export const explain = (error: z.core.$ZodError): string => {
  const issue = error.issues[0];
  if (issue === undefined) return 'value';
  const path = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return `${path === '' ? 'value' : path.replace(/^\./, '')}: ${issue.code}`;
};
