/**
 * Messages being written (D-42): the text grows in memory, and its new part joins a commit at most every 250 ms, so that
 * is all a crash can lose. Memory leads; rows are only for the next start. Owned by ledger.ts, read by feed.ts and tx.ts.
 */
import { limits } from '#protocol/limits.ts';
import type { Draft } from '#protocol/frames.ts';
import type { Statements } from './statements.ts';

export interface Piece {
  readonly turnId: string | null;
  readonly messageId: string;
  readonly role: 'agent' | 'thought';
  readonly part: number;
  readonly text: string;
}
interface Growing extends Piece {
  readonly text: string;
  /** UTF-16 units of `text` that are in rows. */
  readonly savedUnits: number;
  /** Since when (monotonic ms) there is more than that. */
  readonly unsavedSince: number | null;
  /** Its `draft` row exists. */
  readonly stored: boolean;
}

export class Drafts {
  readonly #growing = new Map<string, Growing>();
  readonly #due: () => void;
  #timer: NodeJS.Timeout | null = null;
  #isClosing = false;

  /** `due` is called when unsaved text has waited long enough; it must lead to `save` inside a transaction. */
  constructor(due: () => void) {
    this.#due = due;
  }

  load(sql: Statements): void {
    const rows = sql.all<Omit<Piece, 'text'> & { conversationId: string }>('SELECT * FROM draft');
    for (const { conversationId, ...piece } of rows) {
      const parts = sql.all<{ text: string }>(
        'SELECT text FROM draftPiece WHERE conversationId = ? ORDER BY startUnits',
        conversationId,
      );
      const text = parts.map((part) => part.text).join('');
      this.#growing.set(conversationId, { ...piece, text, savedUnits: text.length, unsavedSince: null, stored: true });
    }
  }

  get(conversationId: string): Piece | null {
    return this.#growing.get(conversationId) ?? null;
  }

  /** @returns false when another message, role or part is still open there. */
  grow(conversationId: string, piece: Piece): boolean {
    const former = this.#growing.get(conversationId);
    if (
      former !== undefined &&
      (former.messageId !== piece.messageId || former.role !== piece.role || former.part !== piece.part)
    )
      return false;
    const base = former ?? { ...piece, text: '', savedUnits: 0, unsavedSince: null, stored: false };
    this.#growing.set(conversationId, {
      ...base,
      text: base.text + piece.text,
      unsavedSince: base.unsavedSince ?? performance.now(),
    });
    if (!this.#isClosing) this.#timer ??= setTimeout(() => this.#ring(), limits.draftMs);
    return true;
  }

  /** Writes what has waited long enough. @returns what to do after COMMIT: memory follows the transaction. */
  save(sql: Statements): () => void {
    const saved = new Map<string, number>();
    for (const [conversationId, draft] of this.#growing) {
      if (draft.unsavedSince === null || (!this.#isClosing && !isDue(draft.unsavedSince))) continue;
      if (!draft.stored) {
        sql.run(
          'INSERT INTO draft (conversationId, messageId, turnId, role, part) VALUES (?, ?, ?, ?, ?)',
          conversationId,
          draft.messageId,
          draft.turnId,
          draft.role,
          draft.part,
        );
      }
      const text = draft.text.slice(draft.savedUnits);
      sql.run(
        'INSERT INTO draftPiece (conversationId, startUnits, text) VALUES (?, ?, ?)',
        conversationId,
        draft.savedUnits,
        text,
      );
      saved.set(conversationId, draft.text.length);
    }
    return () => {
      for (const [conversationId, savedUnits] of saved) {
        const draft = this.#growing.get(conversationId);
        if (draft !== undefined)
          this.#growing.set(conversationId, { ...draft, savedUnits, unsavedSince: null, stored: true });
      }
    };
  }

  /** Forgets it, after the transaction that stored the message. */
  drop(conversationId: string): void {
    this.#growing.delete(conversationId);
  }

  /** No more timers; the next `save` writes everything. */
  close(): void {
    this.#isClosing = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #ring(): void {
    this.#timer = null;
    this.#due();
    // Those due now are saved by the commit just asked for; the others ring again when they are.
    const waiting = [...this.#growing.values()]
      .flatMap((draft) => draft.unsavedSince ?? [])
      .filter((since) => !isDue(since));
    if (waiting.length === 0) return;
    this.#timer = setTimeout(() => this.#ring(), Math.min(...waiting) + limits.draftMs - performance.now());
  }
}

/** Timers may fire a fraction early, hence the 1. */
const isDue = (since: number): boolean => performance.now() - since >= limits.draftMs - 1;

export const draftFrame = (piece: Piece): Draft => ({
  messageId: piece.messageId,
  ...(piece.turnId === null ? {} : { turnId: piece.turnId }),
  role: piece.role,
  part: piece.part,
  text: piece.text,
});
