/** What a host says, parsed: it reads hostile output, so it is believed no further than this. Used by `terminal.ts`. */
import { terminalSize, type TerminalSize } from '#protocol/methods/terminal.ts';
import { text, z } from '#protocol/schema.ts';

/** `moved`: another directory is there now. `library`: node-pty does not load here. Nothing was started. */
const failed = z.strictObject({ why: z.enum(['moved', 'library', 'program']), message: text(500) });
const exit = z.strictObject({ code: z.nullable(z.int()), signal: z.nullable(text(32)) });
export type Failed = z.infer<typeof failed>;
export type Exit = z.infer<typeof exit>;

const json = (body: Buffer): unknown => JSON.parse(body.toString('utf8'));
export const failedOf = (body: Buffer): Failed => z.parse(failed, json(body));
export const exitOf = (body: Buffer): Exit => z.parse(exit, json(body));
export const sizeOf = (body: Buffer): TerminalSize => z.parse(terminalSize, json(body));
