/** The signed statement inside a DSSE envelope, for reading; checking it is the verifier's work, not this one's. */
export const statementOf = (envelope: string): string | null => {
  try {
    const { payload } = JSON.parse(envelope) as { payload?: unknown };
    if (typeof payload !== 'string') return null;
    const bytes = Uint8Array.from(atob(payload), (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null; // shown as it is, raw
  }
};
