/** Why a row misses its mark, found by looking; printed beside it. By row and text. */
const cold =
  'in a fresh profile about 1.9 s of CPU on two cores, traced: 0.9 s of the page’s thread (0.2 s of it reading, compiling and running 0.4 MB of code), 0.5 s of the browser’s own process for some 30 requests, 0.25 s of drawing in software';
const streaming =
  'every chunk is parsed, checked, projected and drawn as Markdown on the page’s one thread; the floor appends text to one node';
const queued =
  'the bridge’s thread waits for one of two cores while seven to twelve threads of the browser are ready: of 121 delays over 15 ms, 5.8 s in all, 93 % were the kernel’s run queue, 3 % work of ours (8 ms at most), the rest the disk; the note says how long it ran and how long it waited';

export const reasons: Readonly<Record<string, string>> = {
  '1 process start → first good answer':
    'Node’s module loader itself; then 22 files of ours, node:sqlite, and reading and hashing the whole app before it is served (20 ms); the rooms are linked after it listens',
  '4 first usable page, cold, signed in by the link': cold,
  '5 open 2,000 messages, cold → last line': `the bridge’s own part is 3–6 ms of CPU for the first page; the rest is the app’s start: ${cold}`,
  '5 open 20,000 messages, cold → last line': 'as with 2,000 messages',
  '10 chunk at 50/s p50 → frame painted': streaming,
  '10 chunk at 50/s p95 → frame painted': streaming,
  '10 the same in 2,000 messages p95 → in the page': streaming,
  '10 the same in 2,000 messages p95 → frame painted': streaming,
  '11 chunk at 50/s, 4 tabs p50 → in the page': 'four pages draw on two cores, each all of it',
  '11 chunk at 500/s p95 → in the page': streaming,
  '11 chunk at 500/s p95 → frame painted': streaming,
  "16 one file's difference":
    'starting a process takes 8 ms from one of the bridge’s size, git itself 4 ms; the rest are looks at HEAD, the index and the file by the walker; git alone reads the whole index and takes longer',
  '16 a checkpoint where nothing changed':
    'git asks for the times of 20,000 files in C and on several threads; ours looks at each from JavaScript by the walker’s descriptors, so that nothing is read through a link',
  '17 terminal: output, MB/s':
    'four programs on two cores where the floor has three: for 20 MB the host takes 0.45 s of CPU, the bridge 0.25 s, the parser of the page 0.65 s; 0.79 to 1.07× between runs',
  '18 approval click → agent answered, durable, p99':
    'one fsync of about twenty pages, after up to 5 ms in which others may share it; the tail is the disk’s, as the floor’s p99 shows',
  '19 10,000 receipts verified, process included':
    'beside the signatures each statement is parsed, checked for its form and hashed; half carry a second signature',
  '2 memory at rest (resident)':
    'most of it is Node with node:sqlite, ws and zod loaded (in the note, the same in a program that does nothing with them: 53 MB are pages of Node’s own binary, of which the bare server touches 39); ours on top is 12–16 MB: 250 modules as source and compiled code, the rooms, the packed app (1 MB)',
  'A7 GET /up meanwhile, longest': queued,
  'A7 2,000 messages / 60 MB, cold → last screen': `as with 2,000 messages, 256 KiB are sent whatever is stored; ${cold}`,
  'A7 GET /up during the cold start, longest': queued,
  'A7 100,000 rows, cold → last line': `as with 2,000 messages; ${cold}`,
};
