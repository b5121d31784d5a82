/**
 * Reads what `git diff --raw [--numstat] [--patch] -z` prints: one change per file, modes, object names, counts. Names
 * are bytes and end with NUL, so no name can pass for another line (case 51). Pure; used by compare.ts and status.ts.
 */
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { ChangeEntry } from '#protocol/methods/git.ts';
import { idOf, nameOf, pathOf } from './names.ts';

export interface RawChange {
  /** Six octal digits; 000000 where that side is missing. */
  readonly oldMode: string;
  readonly newMode: string;
  /** All zero where missing, or where git does not know it yet (the folder's side). */
  readonly oldOid: string;
  readonly newOid: string;
  readonly letter: string;
  /** Per cent, of a rename or copy. */
  readonly similarity: number;
  readonly path: Buffer;
  readonly from: Buffer | null;
  readonly lines?: { readonly added: number; readonly removed: number };
}

const missingMode = '000000';
export const isMissing = (mode: string): boolean => mode === missingMode;

/** Fields that end with NUL, one after another. */
export class Fields {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get ended(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Whether the next field begins so. */
  begins(sign: string): boolean {
    return this.#bytes[this.#at] === sign.charCodeAt(0);
  }

  next(): Buffer {
    const end = this.#bytes.indexOf(0, this.#at);
    if (end === -1) throw unreadable();
    const field = this.#bytes.subarray(this.#at, end);
    this.#at = end + 1;
    return field;
  }

  rest(): Buffer {
    return this.#bytes.subarray(this.#at);
  }
}

export const unreadable = (): Refusal =>
  new Refusal('unsupported_git_state', { message: 'This version of git answered in a way that is not understood.' });

const rawPattern = /^:(\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])(\d*)$/;

/** `patch` is what follows the list. @throws Refusal git_output_too_large above `limits.gitEntries`, never a part */
export const parseRaw = (output: Buffer): { changes: RawChange[]; patch: Buffer } => {
  const fields = new Fields(output);
  const changes: RawChange[] = [];
  while (fields.begins(':')) {
    if (changes.length === limits.gitEntries) throw new Refusal('git_output_too_large');
    const change = rawChange(fields);
    const before = changes.at(-1);
    // A conflict is told first, then how the side that was asked for differs.
    if (before?.letter === 'U' && before.path.equals(change.path))
      changes[changes.length - 1] = { ...change, letter: 'U' };
    else changes.push(change);
  }
  const lines = new Map<string, { added: number; removed: number }>();
  while (!fields.ended && !fields.begins('\0')) countedLines(fields, lines);
  const patch = fields.ended ? Buffer.alloc(0) : fields.rest().subarray(1);
  return {
    changes: changes.map((change) => {
      const counted = lines.get(idOf(change.path));
      return counted === undefined ? change : { ...change, lines: counted };
    }),
    patch,
  };
};

const rawChange = (fields: Fields): RawChange => {
  const match = rawPattern.exec(fields.next().toString('latin1'));
  if (match === null) throw unreadable();
  const [, oldMode = '', newMode = '', oldOid = '', newOid = '', letter = '', score = ''] = match;
  const first = fields.next();
  const two = letter === 'R' || letter === 'C';
  const path = two ? fields.next() : first;
  return { oldMode, newMode, oldOid, newOid, letter, similarity: Number(score), path, from: two ? first : null };
};

// `-` for what git takes for binary: no lines were counted.
const countedLines = (fields: Fields, lines: Map<string, { added: number; removed: number }>): void => {
  const field = fields.next();
  const match = /^(\d+|-)\t(\d+|-)\t/.exec(field.toString('latin1'));
  if (match === null) throw unreadable();
  let path = field.subarray(match[0].length);
  if (path.length === 0) {
    fields.next();
    path = fields.next();
  }
  if (match[1] !== '-') lines.set(idOf(path), { added: Number(match[1]), removed: Number(match[2]) });
};

const states: Readonly<Record<string, ChangeEntry['state']>> = {
  A: 'added',
  D: 'deleted',
  M: 'modified',
  R: 'renamed',
  C: 'copied',
  T: 'type_changed',
  U: 'conflict',
  '?': 'untracked',
};

export const whatOf = (mode: string): ChangeEntry['what'] =>
  mode === '160000' ? 'submodule' : mode === '120000' ? 'symlink' : 'file';

/** As the protocol has it. `prefix` as in names.ts. */
export const entryOf = (change: RawChange, prefix: Buffer, isSecret: (path: Buffer) => boolean): ChangeEntry => {
  const state = states[change.letter];
  if (state === undefined) throw unreadable();
  const { oldMode, newMode, path, from, lines } = change;
  const bothThere = !isMissing(oldMode) && !isMissing(newMode);
  return {
    id: idOf(path),
    name: nameOf(path, prefix),
    path: pathOf(path, prefix),
    state,
    ...(from !== null && {
      from: { id: idOf(from), name: nameOf(from, prefix), similarity: change.similarity },
    }),
    what: whatOf(isMissing(newMode) ? oldMode : newMode),
    ...(bothThere && oldMode !== newMode && { modes: { old: oldMode, new: newMode } }),
    secret: isSecret(path) || (from !== null && isSecret(from)),
    ...lines,
  };
};

/** The submodules in what `git ls-files --stage -z` prints, each as one whose commit did not change. */
export const gitlinks = (output: Buffer): RawChange[] => {
  const fields = new Fields(output);
  const links: RawChange[] = [];
  while (!fields.ended) {
    const line = fields.next();
    const [head, oid = ''] = /^160000 ([0-9a-f]+) 0\t/.exec(line.toString('latin1')) ?? [];
    if (head === undefined) continue;
    const same = { oldMode: '160000', newMode: '160000', oldOid: oid, newOid: oid, similarity: 0, from: null };
    links.push({ ...same, letter: 'M', path: line.subarray(head.length) });
  }
  return links;
};
