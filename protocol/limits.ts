/**
 * Every bound of the product, each with its reason. Nothing else in the code base writes such a number down.
 * Units are in the names: Ms milliseconds, Bytes bytes of UTF-8 or of a file, Units UTF-16 code units.
 * Read by every room; changed only here.
 */
const KiB = 1024;
const MiB = 1024 * KiB;
const second = 1000;
const minute = 60 * second;
const day = 24 * 60 * minute;

export const limits = {
  // Wire
  /** One WebSocket text frame or NDJSON line; larger closes 1009. Room for a full page plus its envelope. */
  frameBytes: 1 * MiB,
  /** One stored event, measured on the stored bytes; larger content goes to a blob. Leaves envelope room in a frame. */
  eventBytes: 768 * KiB,
  /** One page of history: fits one frame. */
  pageBytes: 768 * KiB,
  /** Events in a page: a screen is about 40 rows; 500 keeps a page under 20 ms of projecting. */
  pageEvents: 500,
  /** The page that comes with a subscription: paints the last screen without making it wait for a full page. */
  firstPageBytes: 256 * KiB,
  firstPageEvents: 100,
  /** Queue of one attachment before the bridge stops reading from it. */
  tailBytes: 4 * MiB,
  tailFrames: 1024,
  /** A queue not below half after this is a client that is gone in all but name: close 1013. */
  slowDrainMs: 10 * second,
  /** Requests one attachment may have open at once. */
  pendingRequests: 64,
  /** Live sockets together; a person has a few tabs and a terminal. */
  attachments: 16,
  /** From upgrade to a valid connection.initialize. */
  handshakeMs: 5 * second,
  /** Body of POST /launch: a token and a public key. */
  launchBodyBytes: 4 * KiB,
  /** Body of other POSTs under base. */
  postBodyBytes: 64 * KiB,
  /** Inbound messages per window (token bucket); the acks have their own pace. */
  inboundPerWindow: 100,
  inboundWindowMs: 10 * second,
  inboundBurst: 20,
  /** Acks at most this often: they only bound what is resent. */
  ackIntervalMs: 1 * second,
  pingIntervalMs: 20 * second,
  /** Presence and pong timeout, one shared constant. */
  presenceTimeoutMs: 60 * second,
  /** The client gives up on an answer to a read after this and says so. */
  requestTimeoutMs: 30 * second,
  /** A revoked or closed connection gets this long for answers already on their way, then it is cut off. */
  retireMs: 1 * second,
  reconnectMinMs: 250,
  reconnectMaxMs: 10 * second,

  // Launch and session
  launchTokenBytes: 32,
  launchTokenMs: 60 * second,
  /** Wrong tokens before only the terminal can make a new one. */
  launchFailures: 1000,
  cookieBytes: 32,
  segmentBytes: 16,
  nonceBytes: 32,
  sessionIdleMs: 7 * day,
  sessionAbsoluteMs: 30 * day,
  sessions: 64,
  /** A session's use is written down at most this often: each is a durable commit. */
  sessionTouchMs: 5 * minute,
  ticketBytes: 32,
  ticketMs: 10 * second,
  tickets: 64,

  // HTTP
  defaultPort: 7433,
  headersMs: 5 * second,
  httpRequestMs: 15 * second,
  /** TCP connections; the oldest without a judged head yields its place. */
  connections: 64,
  headBytes: 16 * KiB,
  headCount: 100,

  // Ledger
  /** Group commit: at most this long or this many works share one fsync. */
  commitDelayMs: 5,
  commitWorks: 64,
  /** A streaming draft is written at most this often: a crash loses no more. */
  draftMs: 250,
  /** Live text frames at most this often: one screen refresh. */
  liveTextMs: 16,
  /** Outside a turn a message segment ends after this silence. */
  segmentIdleMs: 2 * second,
  /** Retained transcript of one conversation; approvals, receipts, turns and conversation events ignore it. */
  transcriptBytes: 64 * MiB,
  conversationBlobBytes: 256 * MiB,
  blobBytes: 20 * MiB,
  blobUploads: 16,
  /** Text above this inside an event is moved to a blob, with head and tail kept inline. */
  inlineTextBytes: 64 * KiB,
  /** Of a text moved to a blob, what the event keeps for the first look. */
  inlineHeadUnits: 8 * KiB,
  inlineTailUnits: 8 * KiB,
  searchResults: 50,
  /** Words of one search that are used; a query holds 400 characters. */
  searchTerms: 32,
  snippetUnits: 1000,
  /** How long a statement waits for a lock held by another connection. */
  busyMs: 5 * second,
  /** The log of not yet checkpointed pages is cut back to this. */
  journalBytes: 64 * MiB,
  /** A Unix socket's address, with its end: 104 on macOS, 108 on Linux. */
  socketPathBytes: 103,
  conversationsPage: 200,

  /** First seqs in one outline (7 bytes each): leaves the page its room in the frame; older blocks are merged. */
  outlineBlocks: 20_000,

  // Conversations
  promptBytes: 128 * KiB,
  promptBlobs: 16,
  /** Pasted text from here on becomes an attachment. */
  pasteBytes: 32 * KiB,
  queue: 16,
  titleUnits: 200,
  noteUnits: 4000,

  // Agents
  agentProcesses: 4,
  agentProcessesMax: 16,
  agentLineBytes: 32 * MiB,
  /** Lines that are not JSON objects before the agent is stopped as broken. */
  agentGarbageLines: 10_000,
  agentStderrBytes: 256 * KiB,
  agentTeeBytes: 4 * MiB,
  initializeMs: 90 * second,
  sessionNewMs: 60 * second,
  cancelMs: 5 * second,
  terminateMs: 2 * second,
  /** A turn that says nothing for this long shows so; nothing is killed for it. */
  quietMs: 30 * second,
  /** Output kept of one ACP terminal when the agent names no limit, and the most it may name. */
  agentTerminalBytes: 1 * MiB,
  agentTerminals: 16,
  probeMs: 10 * second,
  customAgents: 64,
  /** Kinds of update this version does not know, and how many of each are shown; the rest stay in the frame ring. */
  unknownUpdates: 50,

  // Approvals
  approvalMs: 30 * minute,
  /** Waiting at once in one conversation; more are refused to the agent. */
  approvalsPending: 256,
  /** Allow is inert this long after the card appears or moves. */
  cardInertMs: 500,
  /** Canonical bytes of one action; larger payloads are referenced by digest. */
  actionBytes: 512 * KiB,
  rules: 1000,
  /** Wall clock against monotonic clock: a larger difference is a step, and the receipt says so. */
  clockStepMs: 2 * second,
  /** Line edits looked for when counting a diff; beyond it the changed middle counts as replaced whole. */
  diffEdits: 1000,
  /** A PKCS#8 Ed25519 key is 119 bytes; anything much larger is not one. */
  keyFileBytes: 4 * KiB,

  // Files
  directoryPage: 200,
  directoryCursorMs: 5 * minute,
  directoryEntries: 20_000,
  /** Listings that may be continued at once, oldest dropped: each holds its names. */
  directoryCursors: 32,
  /** Folders one look of the folder picker shows. */
  browseEntries: 1000,
  /** Recent workspaces listed. */
  workspaces: 500,
  /** Entries one file search looks at: about a second of walking. */
  searchEntries: 100_000,
  /** Longest slice of work of a search before other requests get their turn. */
  searchSliceMs: 8,
  /** An image up to this is sent within the answer; base64 of it fits a frame. */
  imageBytes: 512 * KiB,
  readBytes: 1 * MiB,
  readLines: 2000,
  scanBytes: 32 * MiB,
  sniffBytes: 8 * KiB,
  writeBytes: 8 * MiB,
  pathBytes: 4096,
  pathDepth: 64,
  nameBytes: 255,
  trustFileBytes: 1 * MiB,
  trustFiles: 500,
  /** Entries one trust scan looks at below the folders its patterns name. */
  trustEntries: 5000,

  // App
  /** Of an event this version cannot read, so much of its JSON is shown: enough to tell what it was. */
  unknownUnits: 16 * KiB,
  /** Offline copy, least recently opened evicted first. */
  offlineBytes: 200 * MiB,
  /** Markdown longer than this renders as plain text with head and tail. */
  markdownUnits: 64 * KiB,
  /** Plain output above this shows head and tail until asked. */
  outputUnits: 16 * KiB,
} as const;
