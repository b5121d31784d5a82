/**
 * The bridge's log (L-15): one JSON object a line on stderr, when COUNTERSIGN_LOG=1. Ids, codes, counts, durations,
 * refusals with their reason; never tokens, cookies, keys, the segment, prompts, events, file text or environment values.
 * Rooms hand errors over as they are; what is written of one leaves its message out, for messages carry values.
 */
export type Log = (line: Readonly<Record<string, unknown>>) => void;

const frames = 6;
const causes = 3;
/** Fixed words of Node and SQLite for what went wrong. */
const fixedWords = ['code', 'syscall', 'errcode', 'errstr'] as const;

/** An error without its message: what kind, where from, and the same of its cause. */
const traceOf = (error: Error, depth = 0): Record<string, unknown> => {
  const known = fixedWords.flatMap((name) => {
    const value: unknown = (error as unknown as Record<string, unknown>)[name];
    return typeof value === 'string' || typeof value === 'number' ? [[name, value]] : [];
  });
  const from = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    name: error.name,
    ...Object.fromEntries(known),
    from: from.slice(0, frames).map((line) => line.trim()),
    ...(error.cause instanceof Error && depth < causes ? { cause: traceOf(error.cause, depth + 1) } : {}),
  };
};

const withoutMessages = (line: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(line).map(([name, value]) => [name, value instanceof Error ? traceOf(value) : value]),
  );

export const createLog = (): Log => {
  if (process.env['COUNTERSIGN_LOG'] !== '1') return () => undefined;
  return (line) =>
    void process.stderr.write(`${JSON.stringify({ at: new Date().toISOString(), ...withoutMessages(line) })}\n`);
};
