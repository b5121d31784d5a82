/**
 * The last so many bytes of a stream of texts: stderr of an agent, and every raw frame for the inspector. Bounded, kept
 * in memory only, and redacted when read, because both may hold what the agent was given.
 */
import { limits } from '#protocol/limits.ts';

export class Ring {
  readonly #maxBytes: number;
  #entries: string[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(text: string): void {
    // One entry may fill the ring but not outgrow it; its end says more than its beginning.
    const entry = text.length > this.#maxBytes ? text.slice(-this.#maxBytes) : text;
    this.#entries.push(entry);
    this.#bytes += Buffer.byteLength(entry);
    while (this.#bytes > this.#maxBytes && this.#entries.length > 1) {
      this.#bytes -= Buffer.byteLength(this.#entries.shift() as string);
    }
  }

  entries(): readonly string[] {
    return this.#entries;
  }

  text(): string {
    return this.#entries.join('');
  }
}

/** Shapes of credentials that are told by their looks alone. */
const shapes = [
  /\b(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abprs]|AKIA|ASIA|AIza|ya29)[-_A-Za-z0-9.]{12,}/g,
  /\bBearer\s+[-._~+/A-Za-z0-9]{12,}=*/gi,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g,
  /((?:api[-_]?key|token|secret|password|authorization)["']?\s*[:=]\s*["']?)[^\s"',}]{8,}/gi,
];

/** Takes known secret values (of 6 units and more) and everything of the shape of one out of `text`. */
export const redact = (text: string, secrets: readonly string[]): string => {
  const plain = secrets
    .filter((secret) => secret.length >= 6)
    .reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text);
  return shapes.reduce(
    (rest, shape) =>
      rest.replace(
        shape,
        (match, label: unknown) => `${typeof label === 'string' && match.startsWith(label) ? label : ''}[redacted]`,
      ),
    plain,
  );
};

/** Agent words for a sentence of ours: one line, no control characters, bounded. */
export const oneLine = (text: string, maxUnits = 300): string => {
  const line = text
    .slice(0, limits.inlineHeadUnits)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > maxUnits ? `${line.slice(0, maxUnits)} …` : line;
};
