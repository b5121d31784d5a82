/**
 * The bridge's log (L-15): one JSON object a line on stderr, when COUNTERSIGN_LOG=1. Ids, codes, counts, durations,
 * refusals with their reason; never tokens, cookies, keys, the segment, prompts, events, file text or environment values.
 */
export type Log = (line: Readonly<Record<string, unknown>>) => void;

export const createLog = (): Log => {
  if (process.env['COUNTERSIGN_LOG'] !== '1') return () => undefined;
  return (line) => void process.stderr.write(`${JSON.stringify({ at: new Date().toISOString(), ...line })}\n`);
};
