/** Ids and how they are made. Time and randomness are arguments, so that tests and replays are exact. */
const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** UUID version 7 (RFC 9562): 48 bits of milliseconds, then randomness. `random` gives that many fresh bytes. */
export const uuidv7 = (nowMs: number, random: (bytes: number) => Uint8Array): string => {
  const bytes = new Uint8Array(16);
  bytes.set(random(10), 6);
  let rest = nowMs;
  for (let index = 5; index >= 0; index -= 1) {
    bytes[index] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  const text = hex(bytes);
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
};

export const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const sha256Pattern = /^[0-9a-f]{64}$/;
