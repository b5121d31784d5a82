/**
 * What the practice agent remembers of its sessions: one small JSON file each, in the directory the bridge names, so
 * that a conversation survives a restart as it does with a real agent. Used by agent.ts alone.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface Turn {
  readonly prompt: string;
  readonly said: string;
}
export interface Notes {
  readonly sessionId: string;
  readonly cwd: string;
  readonly turns: readonly Turn[];
}

/** Ids become file names, so only our own form is looked up. */
const sessionIdPattern = /^practice-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Enough to go on from; older turns are the bridge's to keep. */
const turnsKept = 50;
const unitsKept = 4000;

/** Null where there are none, or they cannot be read: the session is not known then. */
export const readNotes = async (directory: string, sessionId: string): Promise<Notes | null> => {
  if (!sessionIdPattern.test(sessionId)) return null;
  try {
    return JSON.parse(await readFile(join(directory, `${sessionId}.json`), 'utf8')) as Notes;
  } catch {
    return null;
  }
};

export const writeNotes = async (directory: string, notes: Notes): Promise<void> => {
  const file = join(directory, `${notes.sessionId}.json`);
  await writeFile(`${file}.new`, JSON.stringify(notes), { mode: 0o600 });
  await rename(`${file}.new`, file); // a kill in between leaves the former notes whole
};

export const withTurn = (notes: Notes, turn: Turn): Notes => ({
  ...notes,
  turns: [...notes.turns, { prompt: turn.prompt.slice(0, unitsKept), said: turn.said.slice(0, unitsKept) }].slice(
    -turnsKept,
  ),
});
