/**
 * Canonical JSON (RFC 8785 restricted to strings, safe integers, booleans, null, arrays and plain objects).
 * What is signed or hashed goes through here; a value outside the restriction throws, it is never coerced.
 */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

const isPlainObject = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};

const quote = (text: string): string => {
  if (!text.isWellFormed()) throw new TypeError('canonical JSON refuses a lone surrogate');
  return JSON.stringify(text);
};

/** Canonical text of `value`. Members whose value is `undefined` are left out. @throws TypeError outside the restriction. */
export const canonical = (value: unknown): string => {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new TypeError('canonical JSON refuses numbers that are not safe integers');
    return Object.is(value, -0) ? '0' : String(value);
  }
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value === 'object' && isPlainObject(value)) {
    const members = Object.entries(value as Record<string, unknown>)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)) // UTF-16 code unit order, as RFC 8785 3.2.3 asks
      .map(([name, member]) => `${quote(name)}:${canonical(member)}`);
    return `{${members.join(',')}}`;
  }
  throw new TypeError(`canonical JSON refuses a ${typeof value}`);
};

/** Whether members come in canonical order and every value is one that canonical JSON has. */
const isOrdered = (value: unknown): boolean => {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value === 'number') return Number.isSafeInteger(value);
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isOrdered);
  const members = value as Record<string, unknown>;
  const names = Object.keys(members);
  return names.every(
    (name, index) =>
      (index === 0 || (names[index - 1] ?? '') < name) && name.isWellFormed() && isOrdered(members[name]),
  );
};

/**
 * Whether `text`, which parsed to `value`, is canonical: `canonical(value) === text`, found out without sorting. What
 * JSON.stringify writes in the order of the members is canonical when that order is; member names that are numbers
 * come in another order and are compared in full.
 */
export const isCanonical = (text: string, value: unknown): boolean => {
  try {
    return (JSON.stringify(value) === text && isOrdered(value)) || canonical(value) === text;
  } catch {
    return false; // too deep, or outside the restriction
  }
};
