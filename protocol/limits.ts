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
  /** Two or three screens of rows. */
  firstPageEvents: 100,
  /** Queue of one attachment before the bridge stops reading from it. */
  tailBytes: 4 * MiB,
  /** The same queue counted in frames: small frames cost memory beyond their bytes. */
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
  /** Long enough that a burst after a reconnect evens out. */
  inboundWindowMs: 10 * second,
  /** A page that opens lists everything once: about a dozen requests. */
  inboundBurst: 20,
  /** Acks at most this often: they only bound what is resent. */
  ackIntervalMs: 1 * second,
  /** Below the shortest idle timeout of anything between two local sockets, and three fit into the presence timeout. */
  pingIntervalMs: 20 * second,
  /** Presence and pong timeout, one shared constant. */
  presenceTimeoutMs: 60 * second,
  /** The client gives up on an answer to a read after this and says so. */
  requestTimeoutMs: 30 * second,
  /** A revoked or closed connection gets this long for answers already on their way, then it is cut off. */
  retireMs: 1 * second,
  /** First wait after a lost connection: below what a person notices, above a busy loop. */
  reconnectMinMs: 250,
  /** Longest wait between attempts: a bridge that is started again is found while one still looks. */
  reconnectMaxMs: 10 * second,
  /** Of the burst, what the client uses for what may wait; the rest is for pings and frames that arrive bunched. */
  clientBurst: 15,
  /** Of the open requests, places the client leaves free for acks, pings and cancels. */
  spareRequests: 8,
  /** Contradictions in a row, without one good event between, before a client gives a conversation up. */
  integrityStrikes: 3,
  /** Message segments whose late text frames a client still recognises; frames trail their event by one send window. */
  draftSegments: 8,

  // Launch and session
  /** 256 bits: cannot be guessed by trying. */
  launchTokenBytes: 32,
  /** Time for a browser to open; a URL left in a scrollback is dead. */
  launchTokenMs: 60 * second,
  /** Wrong tokens before only the terminal can make a new one. */
  launchFailures: 1000,
  /** 256 bits: cannot be guessed by trying. */
  cookieBytes: 32,
  /** 128 bits of path below which everything lies, so that other local pages cannot name it. */
  segmentBytes: 16,
  /** 256 bits, fresh for each connection: a proof cannot be replayed. */
  nonceBytes: 32,
  /** A week away from the desk signs out. */
  sessionIdleMs: 7 * day,
  /** A stolen cookie dies within a month, used or not. */
  sessionAbsoluteMs: 30 * day,
  /** Browsers of one person, with room for private windows. */
  sessions: 64,
  /** A session's use is written down at most this often: each is a durable commit. */
  sessionTouchMs: 5 * minute,
  /** 256 bits: cannot be guessed by trying. */
  ticketBytes: 32,
  /** A ticket is used at once; a slow tab still makes it. */
  ticketMs: 10 * second,
  /** Unused tickets held at once: one transcript full of images. */
  tickets: 64,

  // HTTP
  /** One fixed port, so that the installed app keeps its origin; below the range systems pick client ports from. */
  defaultPort: 7433,
  /** A local client sends its head at once; one that drips is not a client. */
  headersMs: 5 * second,
  /** A blob of the largest size over loopback, with a slow disk. */
  httpRequestMs: 15 * second,
  /** TCP connections; the oldest without a judged head yields its place. */
  connections: 64,
  /** Heads of our own pages are below 2 KiB; cookies of other local pages may come along. */
  headBytes: 16 * KiB,
  /** Browsers send about twenty. */
  headCount: 100,

  // Ledger
  /** Group commit: at most this long or this many works share one fsync. */
  commitDelayMs: 5,
  /** A full group is written at once: waiting longer would gain nothing. */
  commitWorks: 64,
  /** A streaming draft is written at most this often: a crash loses no more. */
  draftMs: 250,
  /** Live text frames at most this often: one screen refresh. */
  liveTextMs: 16,
  /** Outside a turn a message segment ends after this silence. */
  segmentIdleMs: 2 * second,
  /** Retained transcript of one conversation; approvals, receipts, turns and conversation events ignore it. */
  transcriptBytes: 64 * MiB,
  /** Images and large outputs of one conversation, counted apart from its transcript. */
  conversationBlobBytes: 256 * MiB,
  /** A large screenshot or log; larger things belong into the workspace. */
  blobBytes: 20 * MiB,
  /** As many as a prompt may carry. */
  blobUploads: 16,
  /** Text above this inside an event is moved to a blob, with head and tail kept inline. */
  inlineTextBytes: 64 * KiB,
  /** Of a text moved to a blob, what the event keeps for the first look. */
  inlineHeadUnits: 8 * KiB,
  /** Errors stand at the end of an output. */
  inlineTailUnits: 8 * KiB,
  /** What a person looks through before asking more exactly. */
  searchResults: 50,
  /** Words of one search that are used; a query holds 400 characters. */
  searchTerms: 32,
  /** Two lines around a match. */
  snippetUnits: 1000,
  /** A deleted conversation is out of reach at once and cleared away in slices, so that nothing waits for a huge one. */
  sweepBytes: 128 * KiB,
  /** The same slice counted in events, which cost an index entry each. */
  sweepEvents: 64,
  /** Between two slices, so that the writer serves what waits. */
  sweepPauseMs: 20,
  /** The thread of long reads ends after this silence; starting it anew takes a tenth of a second. */
  readerIdleMs: 5 * minute,
  /** Pages of the search index rewritten in one slice, so that no deleted word stays in it. */
  sweepIndexPages: 64,
  /** How long a statement waits for a lock held by another connection. */
  busyMs: 5 * second,
  /** The log of not yet checkpointed pages is cut back to this. */
  journalBytes: 64 * MiB,
  /** A Unix socket's address, with its end: 104 on macOS, 108 on Linux. */
  socketPathBytes: 103,
  /** A few screens of rows, well within a frame. */
  conversationsPage: 200,

  /** First seqs in one outline (7 bytes each): leaves the page its room in the frame; older blocks are merged. */
  outlineBlocks: 20_000,

  // Conversations
  /** About 30,000 words; more is sent as attachment. */
  promptBytes: 128 * KiB,
  /** More images than any agent takes in one prompt. */
  promptBlobs: 16,
  /** Pasted text from here on becomes an attachment. */
  pasteBytes: 32 * KiB,
  /** What a person can still remember having queued. */
  queue: 16,
  /** Of a queued prompt, what the list of the queue shows. */
  queuedTextUnits: 2000,
  /** One line of a header. */
  titleUnits: 200,
  /** Other folders a conversation may read: as many names as a person tells apart at a glance. */
  references: 8,
  /** A paragraph to the agent; longer explanations are prompts. */
  noteUnits: 4000,

  // Agents
  /** Each takes hundreds of megabytes: four leave an old laptop usable. */
  agentProcesses: 4,
  /** The most the operator may allow. */
  agentProcessesMax: 16,
  /** One ACP message with a large file in it, both texts and JSON escapes. */
  agentLineBytes: 32 * MiB,
  /** Lines that are not JSON objects before the agent is stopped as broken. */
  agentGarbageLines: 10_000,
  /** The last words of a program that failed. */
  agentStderrBytes: 256 * KiB,
  /** The last messages of a session, for the protocol view. */
  agentTeeBytes: 4 * MiB,
  /** The first start of an agent may unpack and compile itself. */
  initializeMs: 90 * second,
  /** Opening a session may start MCP servers and ask a network. */
  sessionNewMs: 60 * second,
  /** Time for an agent to say how the cancelled turn ended. */
  cancelMs: 5 * second,
  /** After a loaded session's answer: silence that means its replay is over. Gemini's whole replay takes some ms. */
  replayQuietMs: 400,
  /** Between TERM and KILL: time to write a session file. */
  terminateMs: 2 * second,
  /** A turn that says nothing for this long shows so; nothing is killed for it. */
  quietMs: 30 * second,
  /** Output kept of one ACP terminal when the agent names no limit, and the most it may name. */
  agentTerminalBytes: 1 * MiB,
  /** Commands of one agent running at once. */
  agentTerminals: 16,
  /** A version question to a program on a cold disk. */
  probeMs: 10 * second,
  /** More than anyone sets up by hand; keeps the list within a frame. */
  customAgents: 64,
  /** Kinds of update this version does not know, and how many of each are shown; the rest stay in the frame ring. */
  unknownUpdates: 50,

  // Approvals
  /** A coffee, not a night: an agent that waits longer is told no. */
  approvalMs: 30 * minute,
  /** Waiting at once in one conversation; more are refused to the agent. */
  approvalsPending: 256,
  /** Allow is inert this long after the card appears or moves. */
  cardInertMs: 500,
  /** Canonical bytes of one action; larger payloads are referenced by digest. */
  actionBytes: 512 * KiB,
  /** One page of rules that one can still read. */
  rules: 1000,
  /** A command line that a rule may hold word for word, and that is parsed at all; longer ones are uninspectable. */
  ruleTextUnits: 16 * KiB,
  /** All rules with their sentences, so that they fit one frame together. */
  rulesBytes: 448 * KiB,
  /** Matches a rule's limit may count: each is a row that is looked through. */
  ruleLimitCount: 1000,
  /** Longest span of a rule's limit. */
  ruleSpanMs: 31 * day,
  /** `.countersign/rules.json` of a project: 50 suggestions with long command lines. */
  ruleFileBytes: 64 * KiB,
  /** A program that a rule is bound to is hashed up to this size; a larger one is not bound, and asks. */
  programBytes: 512 * MiB,
  /** Commands within commands that are read: `sudo env sh -c "… $(…)"` is four; deeper ones are made to hide. */
  readingDepth: 12,
  /** Parts of one command that are looked at; a full line of text has about 4000. */
  readingNodes: 20_000,
  /** Times `<<` may be in one text: the parser's work grows with each here-document times the length. */
  readingDocuments: 400,
  /** Wall clock against monotonic clock: a larger difference is a step, and the receipt says so. */
  clockStepMs: 2 * second,
  /** Line edits looked for when counting a diff; beyond it the changed middle counts as replaced whole. */
  diffEdits: 1000,
  /** A PKCS#8 Ed25519 key is 119 bytes; anything much larger is not one. */
  keyFileBytes: 4 * KiB,
  /** Receipts read at once, each with its action: half of the largest actions fit memory easily. */
  pageReceipts: 64,
  /** Changes of the signing key: one a year for a lifetime, and a proof still carries them all. */
  keyRotations: 50,
  /** A checkpoint of the log: three short lines and a few signatures of witnesses. */
  checkpointUnits: 2000,
  /** A file that checkpoints were appended to for years. */
  anchorFileBytes: 4 * MiB,
  /** Receipts between two checkpoints signed unasked: a rollback beyond the last one is noticed. */
  checkpointReceipts: 256,

  // Files
  /** A few screens of rows. */
  directoryPage: 200,
  /** How long someone scrolls on in one listing. */
  directoryCursorMs: 5 * minute,
  /** Larger folders are generated; they are shown cut and say so. */
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
  /** A line of code, and a query, that one still reads. */
  grepQueryUnits: 400,
  /** Of a longer line, so much around its first match. */
  grepLineUnits: 400,
  /** Matches marked in one line. */
  grepMarks: 20,
  /** Lines of one answer: a few screens. */
  grepPage: 200,
  /** Lines one search finds; whoever gets there asks more exactly. */
  grepLines: 5000,
  /** Read by one search: a few seconds. */
  grepBytes: 1024 * MiB,
  /** An answer waits this long for something to show. */
  grepAnswerMs: 250,
  /** A worker that says nothing for this long, and then works as long without a word, is inside a pattern without an end. */
  grepStallMs: 1.5 * second,
  /** A search nobody asks about any more. */
  grepIdleMs: 30 * second,
  /** Of an ignore file. */
  ignoreBytes: 64 * KiB,
  /** Rules of one ignore file; the largest collections have a few hundred. */
  ignoreLines: 1000,
  /** Comparisons its patterns may take in one walk: about a tenth of a second. */
  ignoreSteps: 20_000_000,
  /** Folders whose change one attachment is told of: as many as a screen shows open. */
  watchedFolders: 64,
  /** Changes come in bursts; a client is told once. */
  watchSettleMs: 250,
  /** Where the system takes no more watches, one looks again after this. */
  watchPollMs: 2 * second,
  /** Line places remembered for files that are paged through: one number for every 1,000 lines. */
  lineIndexes: 8,
  /** Between two of them: one small read finds the line. */
  lineIndexStep: 1000,
  /** Two hundred and fifty-six rows of sixteen. */
  binaryHeadBytes: 4 * KiB,
  /** An image up to this is sent within the answer; base64 of it fits a frame. */
  imageBytes: 512 * KiB,
  /** A text one would read here fits; more comes in pieces. */
  readBytes: 1 * MiB,
  /** Fifty screens: more comes when scrolled to. */
  readLines: 2000,
  /** Largest file in which a place is looked for, so that one read stays below a second. */
  scanBytes: 32 * MiB,
  /** Where git looks for NUL bytes, too. */
  sniffBytes: 8 * KiB,
  /** Largest text an agent may write in one action: beyond it no one reviews. */
  writeBytes: 8 * MiB,
  /** PATH_MAX of Linux. */
  pathBytes: 4096,
  /** Components opened one by one; deeper trees are made to hurt. */
  pathDepth: 64,
  /** NAME_MAX of Linux. */
  nameBytes: 255,
  /** Configuration that starts programs is far smaller. */
  trustFileBytes: 1 * MiB,
  /** More than any repository has; beyond it the list says that it is cut. */
  trustFiles: 500,
  /** Entries one trust scan looks at below the folders its patterns name. */
  trustEntries: 5000,
  /** Entries one review walks over: about two seconds. */
  trustWalked: 100_000,
  /** Files one review reads beside those that configure something; more is said to be cut. */
  trustRead: 10_000,
  /** A larger source or text is generated, or data; only its beginning is reviewed. */
  trustReadBytes: 256 * KiB,
  /** Bytes one review reads in all. */
  trustReadAll: 128 * MiB,
  /** Findings sent; more are counted. */
  trustFindings: 200,
  /** Of one rule in one file; more say nothing new. */
  trustFindingsPerFile: 5,
  /** A line of evidence: what fits a line on a screen. */
  trustEvidenceUnits: 160,
  /** A longer line is looked through in pieces that overlap. */
  trustLineUnits: 4000,
  /** An older review is done again when it is asked for. */
  trustStaleMs: 5 * 60 * second,
  /** What `trust.get` waits for a review before it answers with what there is. */
  trustWaitMs: 1 * second,
  /** A malware scan beyond this is given up. */
  malwareMs: 300 * second,
  /** A malware scan is done again after this. */
  malwareStaleMs: 6 * 3600 * second,
  /** What a malware scanner may print. */
  malwareBytes: 256 * KiB,

  // The profile of a workspace
  /** Files whose names are looked at. */
  profileFiles: 220,
  /** Folders below each other. */
  profileDepth: 6,
  /** Of one file. */
  profileFileBytes: 12_000,
  /** Names of one kind that are told. */
  profileNames: 60,
  /** As one text: three lists of long names, and a README. */
  profileBytes: 1 * MiB,

  // The map of a workspace, and excerpts for a message
  /** A longer line is generated or data, and no hint is looked for in it. */
  hintLineUnits: 400,
  /** Symbols, and imports, told of one folder: what a person still reads. */
  mapNames: 24,
  /** As one text: what goes along with a message without being the message. */
  mapBytes: 48 * KiB,
  /** Files that a page names to an answer with excerpts: what one turn changed, and what is mentioned. */
  excerptPaths: 100,
  /** Words of a message that may be a symbol, and as many that may be a file. */
  excerptWords: 200,
  /** More is the repository itself, which the agent can read. */
  excerpts: 8,
  /** About one screen of code. */
  excerptLines: 60,
  /** Of a file of which nothing is named but itself. */
  excerptHeadLines: 40,
  /** Shown before a line that is meant, so that its comment is there. */
  excerptLinesBefore: 2,
  /** A function of usual length. */
  excerptLinesAfter: 25,
  /** Sixty lines of usual length, several times. */
  excerptBytes: 12_000,
  /** All together: a few thousand tokens. */
  excerptsBytes: 24_000,
  /** A larger file is generated, or data; none of its lines is proposed. */
  excerptFileBytes: 256 * KiB,

  // Git and checkpoints
  /** One git command on a large repository with a cold disk. */
  gitMs: 10 * second,
  /** At once; more would only wait for the same disk. */
  gitProcesses: 4,
  /** What one git command may print. */
  gitBytes: 4 * MiB,
  /** An index of about half a million files, copied whenever it changed. */
  gitIndexBytes: 64 * MiB,
  /** Submodules looked into for one status: each is one more run of git. */
  gitSubmodules: 20,
  /** Changed files that one still looks through; beyond it the list is refused, never cut in silence. */
  gitEntries: 5000,
  /** Commits of one page of a log. */
  gitCommits: 100,
  /** A longer line is minified or data: shown cut. */
  diffLineUnits: 4000,
  /** Lines of one file's difference that are sent at all; about a hundred screens. */
  diffLines: 5000,
  /** Changed lines sent unasked; more waits for a press. */
  diffLinesUnasked: 1500,
  /** Unchanged lines around a change that may be asked for. */
  diffContext: 1000,
  /** Files of one checkpoint. */
  checkpointFiles: 20_000,
  /** Bytes of the files of one checkpoint. */
  checkpointBytes: 256 * MiB,
  /** Checkpoints kept of one conversation; the oldest are cleared away. */
  checkpoints: 400,
  /** A larger file is left out of checkpoints, and counted: no one reviews it, and every change of it would be kept whole. */
  checkpointFileBytes: 32 * MiB,
  /** Content handed to git, or taken from it, at once. */
  checkpointBatchBytes: 32 * MiB,
  /** A file that changed so shortly before it was read is read again: its times may not tell the next change. */
  checkpointSettleMs: 2 * second,
  /** What one conversation's checkpoints may take on the disk; the oldest are cleared away. */
  checkpointStoreBytes: 1024 * MiB,
  /** Writes to a conversation's store before it is tidied; each leaves a pack that is looked through. */
  checkpointPacks: 40,
  /** Quiet after which a store is tidied. */
  checkpointTidyMs: 5 * second,
  /** Tidying packs everything anew. */
  checkpointTidyLimitMs: 120 * second,
  /** The files of a moment are kept for whoever looks at what changed until then. */
  checkpointLentMs: 60 * second,
  /** The first look at a large folder on a slow disk; it goes on beside the turn that did not wait for it. */
  checkpointScanMs: 120 * second,
  /** Repositories within a folder that are listed by themselves, one start of git each. */
  checkpointRepositories: 50,
  /** Files changed on both sides that bringing back merges, one start of git each. */
  worktreeMerges: 200,
  /** A larger one is brought back whole or not at all. */
  worktreeMergeBytes: 1 * MiB,
  /** Making a worktree: one checkout of what a checkpoint may hold, on a slow disk. */
  worktreeMs: 60 * second,
  /** Time a checkpoint may hold a turn up before the turn begins without one, which is said. */
  checkpointMs: 10 * second,

  // Terminals
  /** Each is two processes; a person looks at a few. */
  terminals: 8,
  /** Live ones and the last that ended. */
  terminalsListed: 32,
  /** Below this no program draws anything readable. */
  terminalColumnsMin: 10,
  /** A wide screen with a small font. */
  terminalColumns: 500,
  /** Two such screens above each other. */
  terminalRows: 300,
  /** A title is a label. */
  terminalTitleUnits: 256,
  /** Lines above the screen that are kept and replayed. */
  terminalScrollback: 5000,
  /** A page says that it drew at least this often. */
  terminalAckBytes: 64 * KiB,
  /** Sent and not drawn yet, above which the terminal's output waits. */
  terminalWindowBytes: 512 * KiB,
  /** One frame of keys or of a paste. */
  terminalInputBytes: 64 * KiB,
  /** Frames of keys per second; a held key makes thirty. */
  terminalInputFrames: 200,
  /** A whole replayed screen with its scrollback and colours. */
  terminalReplayBytes: 8 * MiB,
  /** One escape sequence: longer ones are images and attacks, and are left out. */
  terminalSequenceBytes: 4 * KiB,
  /** The largest count in one: what a counted sequence does is done on one screen. */
  terminalSequenceCount: 500,
  /** Numbers in one that count nothing, such as modes. */
  terminalSequenceNumber: 9999,
  /** Output per hyperlink on average: each costs a page 5 KiB, and a listing of linked names holds about this much. */
  terminalLinkBytes: 64,
  /** Hyperlinks at once: two screens full. */
  terminalLinkBurst: 1000,
  /** Output a host has read and not parsed yet, above which the program waits. */
  terminalParseBytes: 1.5 * MiB,
  /** Output that goes on in one piece. */
  terminalPieceBytes: 32 * KiB,
  /** Output on its way from a host to the bridge, above which the program waits: a few pieces, so that neither idles. */
  terminalPipeBytes: 256 * KiB,
  /** Output so soon after other output waits so long for more: below a frame. */
  terminalPieceMs: 3,
  /** Output that may wait for the parser while more comes: twice a full scrollback of usual lines. */
  terminalFloodBytes: 1 * MiB,
  /** Without output for so long, what waits is parsed: longer than a program waits for its page, which is no rest. */
  terminalRestMs: 100,
  /** Colours without a reset between them that are carried over what is not parsed. */
  terminalColourBytes: 16 * KiB,
  /** JavaScript heap of a host: twice what a screen full of colours with its scrollback takes. */
  terminalHeapMiB: 192,
  /** A title is told at most this often. */
  terminalTitleMs: 100,
  /** From hang-up to KILL: time for a shell to write its history. */
  terminalHangupMs: 500,
  /** From spawn to a running shell, on a busy machine. */
  terminalStartMs: 10 * second,
  /** Control frames of a page are a line. */
  terminalControlBytes: 1 * KiB,
  /** Acks are cheap: so many count as one frame of keys. */
  terminalAcksPerFrame: 20,
  /** Sockets of terminals together: every terminal in a few tabs. */
  terminalSockets: 32,

  // App
  /** Of an event this version cannot read, so much of its JSON is shown: enough to tell what it was. */
  unknownUnits: 16 * KiB,
  /** Offline copy, least recently opened evicted first. */
  offlineBytes: 200 * MiB,
  /** Receipts with their proofs kept for checking without the bridge: a few days of work, about 10 MB. */
  offlineReceipts: 400,
  /** A receipt about a larger action is shown, not kept. */
  offlineReceiptBytes: 256 * KiB,
  /** Signatures under way at once while a page checks a log: enough that neither worker waits, a few hundred kB. */
  verifyWindow: 256,
  /** Handed from one worker to the other at once: a message costs as much as checking one. */
  verifyBatch: 32,
  /** Of what is wrong in a log, so much is handed to the page; the count is of all. */
  verifyProblems: 100,
  /** Markdown longer than this renders as plain text with head and tail. */
  markdownUnits: 64 * KiB,
  /** Plain output above this shows head and tail until asked. */
  outputUnits: 16 * KiB,
} as const;
