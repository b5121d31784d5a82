/** Why a row misses its mark, found by looking; printed beside it. By row and text. */
const cold =
  'in a fresh profile about 1.9 s of CPU on two cores, traced: 0.9 s of the page’s thread (0.2 s of it reading, compiling and running 0.4 MB of code), 0.5 s of the browser’s own process for some 30 requests, 0.25 s of drawing in software';
const streaming =
  'every chunk is parsed, checked, projected and drawn as Markdown on the page’s one thread; the floor appends text to one node';

export const reasons: Readonly<Record<string, string>> = {
  '1 process start → first good answer':
    'Node’s module loader itself; then 22 files of ours, node:sqlite, and reading and hashing the whole app before it is served (20 ms); the rooms are linked after it listens',
  '4 first usable page, cold, signed in by the link': cold,
  '5 open 2,000 messages, cold → last line': `the bridge’s own part is 3–6 ms of CPU for the first page; the rest is the app’s start: ${cold}`,
  '5 open 20,000 messages, cold → last line': 'as with 2,000 messages',
  '10 the same in 2,000 messages p95 → in the page': streaming,
  '10 the same in 2,000 messages p95 → frame painted': streaming,
  '11 chunk at 50/s, 4 tabs p50 → in the page': 'four pages draw on two cores, each all of it',
  '11 chunk at 500/s p95 → in the page': streaming,
  '11 chunk at 500/s p95 → frame painted': streaming,
  '18 approval click → agent answered, durable, p99':
    'one fsync of about twenty pages, after up to 5 ms in which others may share it; the tail is the disk’s, as the floor’s p99 shows',
  '19 10,000 receipts verified, process included':
    'beside the signatures each statement is parsed, checked for its form and hashed; half carry a second signature',
  'A7 2,000 messages / 60 MB → last screen': 'as with 2,000 messages: 256 KiB are sent, whatever is stored',
  'A7 GET /up meanwhile, longest':
    'the bridge’s thread does not get a core: seven to twelve threads of the browser are ready on two; profiled, nothing of ours takes longer but the fsync of a commit',
};
