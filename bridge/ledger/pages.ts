/**
 * Pages of a stream: contiguous, ascending, bounded by bytes and events, at least one event each.
 * Bodies stay text: whoever shows them decodes them once. Used on the writer's connection and in the reader worker.
 */
import { limits } from '#protocol/limits.ts';
import type { Statements } from './statements.ts';

export interface Bounds {
  readonly bytes: number;
  readonly events: number;
}
export interface Page {
  /** JSON text of each event. */
  readonly bodies: string[];
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Nothing was left out for the bounds. */
  readonly whole: boolean;
}
interface Row {
  readonly seq: number;
  readonly bytes: number;
  readonly body: string;
}

export const pageBounds: Bounds = { bytes: limits.pageBytes, events: limits.pageEvents };

const take = (rows: Iterable<Row>, bounds: Bounds): { rows: Row[]; whole: boolean } => {
  const taken: Row[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += row.bytes + 1; // the comma between two
    if (taken.length === bounds.events || (bytes > bounds.bytes && taken.length > 0))
      return { rows: taken, whole: false };
    taken.push(row);
  }
  return { rows: taken, whole: true };
};

const page = (taken: { rows: Row[]; whole: boolean }, emptyAt: number): Page => ({
  bodies: taken.rows.map((row) => row.body),
  firstSeq: taken.rows[0]?.seq ?? emptyAt,
  lastSeq: taken.rows.at(-1)?.seq ?? Math.max(0, emptyAt - 1),
  whole: taken.whole,
});

/** The newest events with seq below `beforeSeq`. */
export const pageBefore = (sql: Statements, stream: string, beforeSeq: number, bounds: Bounds): Page => {
  const rows = sql.each<Row>(
    'SELECT seq, bytes, body FROM event WHERE stream = ? AND seq < ? ORDER BY seq DESC LIMIT ?',
    stream,
    beforeSeq,
    bounds.events + 1,
  );
  const taken = take(rows, bounds);
  return page({ rows: taken.rows.reverse(), whole: taken.whole }, beforeSeq);
};

/** The oldest events with seq in (after, through]. */
export const pageAfter = (sql: Statements, stream: string, after: number, through: number, bounds: Bounds): Page => {
  const rows = sql.each<Row>(
    'SELECT seq, bytes, body FROM event WHERE stream = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?',
    stream,
    after,
    through,
    bounds.events + 1,
  );
  return page(take(rows, bounds), after + 1);
};

/** About as much before `aroundSeq` (with it) as after it. */
export const pageAround = (sql: Statements, stream: string, aroundSeq: number, bounds: Bounds): Page => {
  const half = { bytes: Math.floor(bounds.bytes / 2), events: Math.max(1, Math.ceil(bounds.events / 2)) };
  const before = pageBefore(sql, stream, aroundSeq + 1, half);
  const size = before.bodies.reduce((bytes, body) => bytes + Buffer.byteLength(body) + 1, 0);
  const rest = { bytes: bounds.bytes - size, events: bounds.events - before.bodies.length };
  if (rest.events <= 0) return before;
  const rows = sql.each<Row>(
    'SELECT seq, bytes, body FROM event WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?',
    stream,
    aroundSeq,
    rest.events,
  );
  const after: Row[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += row.bytes + 1;
    if (bytes > rest.bytes) break;
    after.push(row);
  }
  return {
    bodies: [...before.bodies, ...after.map((row) => row.body)],
    firstSeq: before.firstSeq,
    lastSeq: after.at(-1)?.seq ?? before.lastSeq,
    whole: false,
  };
};
