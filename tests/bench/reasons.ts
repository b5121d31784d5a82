/** Why a row misses its mark, found by looking; printed beside it. By row and text. */
const shell =
  'some 45 files of JS and CSS in waves over six connections: the shell, then the page of the route, then the socket (hello, initialize, subscribe); grouped into fewer chunks, Kit’s runtime is evaluated before its payload and the app does not start';

export const reasons: Readonly<Record<string, string>> = {
  '1 process start → first good answer':
    'Node’s module loader itself; then 22 files of ours, node:sqlite, and reading and hashing the whole app before it is served (20 ms); the rooms are linked after it listens',
  '4 first usable page, cold, signed in by the link': shell,
  '5 open 2,000 messages, cold → last line': `the bridge’s own part is 3–6 ms of CPU for the first page; the rest is ${shell}`,
  '5 open 20,000 messages, cold → last line': 'as with 2,000 messages',
  'A7 2,000 messages / 60 MB → last screen': 'as with 2,000 messages: 256 KiB are sent, whatever is stored',
};
