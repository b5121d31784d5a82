/** Why a row misses its mark, found by looking; printed beside it. By row and text. */
export const reasons: Readonly<Record<string, string>> = {};
