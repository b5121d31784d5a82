/**
 * Which program a command would run and what its bytes are, so that a rule can be bound to them. Looks a name up
 * as the runner of commands would; hashes with a cache by device, inode, size and times. The rule not to break: what is
 * not certainly one regular file within the bound is null, and then no bound rule matches. Handed to the conversations
 * room by `cli/parts.ts`; runs nothing.
 */
import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { limits } from '#protocol/limits.ts';
import type { ApprovalFacts } from '#protocol/events.ts';
import type { Program } from '../contract.ts';

/** Known hashes at once; more programs than a project runs. */
const cached = 256;

/** The program of a command: the only one of its reading, or argv's first where it was not read. Null where not known. */
export const programName = ({ reading, argv, commandText }: ApprovalFacts): string | null => {
  if (reading === undefined) return commandText === undefined ? (argv?.[0] ?? null) : null;
  // Through a shell or a trampoline what runs first is that; what it runs is not known to be the same one later.
  if (reading.form === 'argv') return argv?.[0] ?? null;
  return reading.simple ? (reading.programs[0]?.name ?? null) : null;
};

/** `path`: a PATH, as commands are run with. Answers come in the order of the questions. */
export const createPrograms = (path: string): ((facts: ApprovalFacts) => Promise<Program | null>) => {
  const hashes = new Map<string, string>();
  let last: Promise<unknown> = Promise.resolve();

  const found = async (name: string, cwd: string): Promise<string | null> => {
    const candidates = name.includes('/')
      ? [resolve(cwd, name)]
      : path
          .split(delimiter)
          .filter(isAbsolute)
          .map((directory) => join(directory, name));
    for (const candidate of candidates) {
      const usable = await access(candidate, constants.X_OK)
        .then(() => stat(candidate))
        .catch(() => null);
      if (usable?.isFile() === true) return realpath(candidate);
    }
    return null;
  };

  const look = async (facts: ApprovalFacts): Promise<Program | null> => {
    const name = programName(facts);
    if (name === null || name === '' || name.includes('\0') || facts.cwd === undefined) return null;
    const file = await found(name, facts.cwd);
    if (file === null) return null;
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    if (size > limits.programBytes || file.length > limits.pathBytes) return null;
    const key = [dev, ino, size, mtimeNs, ctimeNs].join(' ');
    const known = hashes.get(key);
    if (known !== undefined) return { path: file, sha256: known };
    const hash = createHash('sha256');
    await pipeline(createReadStream(file), hash);
    const sha256 = hash.digest('hex');
    const oldest = hashes.keys().next();
    if (hashes.size >= cached && oldest.done !== true) hashes.delete(oldest.value);
    hashes.set(key, sha256);
    return { path: file, sha256 };
  };

  return (facts) => {
    // One after the other: two requests of an agent must not overtake each other by the size of their programs.
    // What cannot be looked at is not known, and what is not known is never allowed by a bound rule.
    const answer = last.then(() => look(facts)).catch(() => null);
    last = answer;
    return answer;
  };
};
