/**
 * The reader worker: long reads on a connection that cannot write, so that the main thread never waits for one.
 * One question, one answer, in order. Started and spoken to only by questions.ts.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { limits } from '#protocol/limits.ts';
import type { SearchHit } from './contract.ts';
import { openReader } from './file.ts';
import { pageAfter, pageAround, pageBefore, pageBounds, type Page } from './pages.ts';
import { matchText } from './query.ts';
import { Statements } from './statements.ts';

export type Question =
  | { readonly op: 'before' | 'around'; readonly stream: string; readonly seq: number; readonly limit: number }
  | { readonly op: 'after'; readonly stream: string; readonly seq: number }
  | { readonly op: 'search'; readonly query: string; readonly conversationId: string | null; readonly limit: number }
  | { readonly op: 'check' };
export interface Answers {
  before: Page;
  around: Page;
  after: Page;
  search: { hits: SearchHit[]; more: boolean };
  check: string[];
}

const search = (sql: Statements, asked: Extract<Question, { op: 'search' }>): Answers['search'] => {
  const match = matchText(asked.query);
  if (match === null) return { hits: [], more: false };
  const hits = sql
    .all<SearchHit>(
      `SELECT event.stream AS conversationId, conversation.title, event.seq, event.at, event.type,
         snippet(search, 0, char(1), char(2), '…', 24) AS snippet
       FROM search JOIN event ON event.place = search.rowid JOIN conversation ON conversation.conversationId = event.stream
       WHERE search MATCH ? AND (? IS NULL OR event.stream = ?) ORDER BY search.rowid DESC LIMIT ?`,
      match,
      asked.conversationId,
      asked.conversationId,
      asked.limit + 1,
    )
    .map((hit) => ({ ...hit, snippet: hit.snippet.slice(0, limits.snippetUnits) }));
  return { hits: hits.slice(0, asked.limit), more: hits.length > asked.limit };
};

const answer = (sql: Statements, asked: Question): Answers[keyof Answers] => {
  switch (asked.op) {
    case 'before':
      return pageBefore(sql, asked.stream, asked.seq, { ...pageBounds, events: asked.limit });
    case 'around':
      return pageAround(sql, asked.stream, asked.seq, { ...pageBounds, events: asked.limit });
    case 'after':
      return pageAfter(sql, asked.stream, asked.seq, Number.MAX_SAFE_INTEGER, pageBounds);
    case 'search':
      return search(sql, asked);
    case 'check':
      return sql
        .all<{ quick_check: string }>('PRAGMA quick_check')
        .flatMap((row) => (row.quick_check === 'ok' ? [] : [row.quick_check]));
  }
};

if (parentPort !== null) {
  const port = parentPort;
  const sql = new Statements(openReader((workerData as { path: string }).path));
  port.on('message', ({ id, asked }: { id: number; asked: Question }) => {
    try {
      port.postMessage({ id, answer: answer(sql, asked) });
    } catch (error) {
      port.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
    }
  });
}
