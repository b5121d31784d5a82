/**
 * Prepared statements of one connection, made once per SQL text. Values are bound, never spliced into the text.
 * Rows are copied into plain objects: node:sqlite gives them a null prototype. Used by every file of this room.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';

export type Value = SQLInputValue;

export class Statements {
  readonly #db: DatabaseSync;
  readonly #cache = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** The first row, or null. The caller names the row's type; STRICT tables make it true. */
  get<Row>(text: string, ...values: Value[]): Row | null {
    const row = this.#prepare(text).get(...values);
    return row === undefined ? null : ({ ...row } as Row);
  }

  all<Row>(text: string, ...values: Value[]): Row[] {
    return this.#prepare(text)
      .all(...values)
      .map((row) => ({ ...row }) as Row);
  }

  /** The same without the copies, for thousands: rows without a prototype, of which members are read and nothing else. */
  bare<Row>(text: string, ...values: Value[]): Row[] {
    return this.#prepare(text).all(...values) as Row[];
  }

  /** Row by row; the caller may stop early. Not to be interleaved with itself. */
  *each<Row>(text: string, ...values: Value[]): Generator<Row> {
    for (const row of this.#prepare(text).iterate(...values)) yield row as Row;
  }

  /** How many rows changed. */
  run(text: string, ...values: Value[]): number {
    return Number(this.#prepare(text).run(...values).changes);
  }

  #prepare(text: string): StatementSync {
    const known = this.#cache.get(text);
    if (known !== undefined) return known;
    const made = this.#db.prepare(text);
    this.#cache.set(text, made);
    return made;
  }
}

/** ` name = ?` for each listed column that `change` carries, and the values in the same order. Columns are constants. */
export const assignments = (
  change: Readonly<Record<string, Value | boolean | undefined>>,
  columns: readonly string[],
): { text: string; values: Value[] } => {
  const named = columns.filter((column) => change[column] !== undefined);
  const values = named.map((column) => bound(change[column]));
  return { text: named.map((column) => `${column} = ?`).join(', '), values };
};

/** node:sqlite throws on undefined and would bind true as 1 only by accident of version. */
export const bound = (value: Value | boolean | undefined): Value =>
  value === undefined ? null : typeof value === 'boolean' ? Number(value) : value;
