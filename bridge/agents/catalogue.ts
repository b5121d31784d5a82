/**
 * The agents that are known, as data (G-10): what to run, what it may see of the environment, how to keep it quiet, how
 * to make it ask, what it calls its safe modes, which files of a workspace make it run code. Facts were measured with
 * the versions named in docs; ids of modes and options are opaque and compared whole.
 * Nothing here runs anything; find.ts looks for programs, session.ts forces the modes.
 */
export interface AskingMode {
  readonly modeId: string;
  /** Modes that still ask, the forced one among them; every other one is refused. */
  readonly safe: readonly string[];
  /** Config options that must keep this value. */
  readonly locked?: Readonly<Record<string, string>>;
}

export interface CatalogueEntry {
  readonly id: string;
  readonly title: string;
  readonly about: string;
  readonly scripted: boolean;
  /** Names looked for on PATH, first match wins; empty for one that is bundled or given by path. */
  readonly bins: readonly string[];
  readonly args: readonly string[];
  /** Programs that must be on PATH beside it. */
  readonly needs: readonly string[];
  /** Least major version of Node for one that is a Node script. */
  readonly nodeMajor: number;
  /** Names passed on from the bridge's environment beyond the common ones. A trailing * matches a prefix. */
  readonly envAllow: readonly string[];
  /** Set for it: no updates, no telemetry, asking where the environment decides that. */
  readonly quietEnv: Readonly<Record<string, string>>;
  /** Where the asking mode is forced by mode; null where it has none. */
  readonly asking: AskingMode | null;
  /** The level without a forced mode, and why. */
  readonly level: 'mediated' | 'unrestricted';
  readonly levelWhy: string;
  /** ACP sign-in used by itself when one of these variables is set; `first` for one that wants it before session/new. */
  readonly authenticate: {
    readonly methodId: string;
    readonly whenEnv: readonly string[];
    readonly first: boolean;
  } | null;
  /** Shown, never run. */
  readonly signIn: string;
  readonly install: string;
  /** Option ids of a permission that deny without ending the turn, best first. */
  readonly preferReject: readonly string[];
  /** Where it keeps sessions, for people. */
  readonly sessions: string;
  readonly trust: readonly { readonly pattern: string; readonly what: string }[];
  /** True where the start below keeps workspace configuration from running; a path where a user setting decides. */
  readonly safeUntrusted: boolean | { readonly homeFile: string; readonly path: readonly string[] };
  /** Whether fs and terminal are advertised: only where they are known to be used well (G-25). */
  readonly served: boolean;
  /** `_meta` of session/new, load and resume. */
  readonly sessionMeta: Readonly<Record<string, unknown>> | null;
  /** Its asking mode does not ask before files inside a git repository are written, and no switch makes it ask. */
  readonly unaskedInRepository: boolean;
  /** Where a permission for a command has the command when its input is not given. `cutAt`: units after which it is cut. */
  readonly worded: {
    readonly in: 'title' | 'content';
    readonly after: readonly string[];
    readonly cutAt: number | null;
  } | null;
}

const entry = (given: Pick<CatalogueEntry, 'id' | 'title' | 'about'> & Partial<CatalogueEntry>): CatalogueEntry => ({
  scripted: false,
  bins: [],
  args: [],
  needs: [],
  nodeMajor: 20,
  envAllow: [],
  quietEnv: {},
  asking: null,
  level: 'unrestricted',
  levelWhy: 'Nothing is known of when this program asks.',
  authenticate: null,
  signIn: '',
  install: '',
  preferReject: [],
  sessions: '',
  trust: [],
  safeUntrusted: false,
  served: false,
  sessionMeta: null,
  unaskedInRepository: false,
  worded: null,
  ...given,
});

const proxies = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'ALL_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'all_proxy',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
];
/** What every agent gets, when the bridge has it. */
export const commonEnv: readonly string[] = [
  'PATH',
  'HOME',
  'LANG',
  'LC_*',
  'TMPDIR',
  'USER',
  'LOGNAME',
  'SHELL',
  'TZ',
  'XDG_*',
  ...proxies,
];

const copilotMode = (name: string): string => `https://agentclientprotocol.com/protocol/session-modes#${name}`;
const openaiEnv = ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_MODEL', 'OPENAI_ORG_ID', 'OPENAI_PROJECT'];

export const catalogue: readonly CatalogueEntry[] = [
  entry({
    id: 'practice',
    title: 'Practice agent',
    about: 'A scripted agent that comes with Countersign. Needs no account and no network.',
    scripted: true,
    level: 'mediated',
    levelWhy: 'Every file it writes and every command it runs goes through the bridge.',
    served: true,
    sessions: "the bridge's own directory",
    safeUntrusted: true,
  }),
  entry({
    id: 'claude',
    title: 'Claude Code',
    about: "Anthropic's coding agent, through its ACP adapter.",
    bins: ['claude-agent-acp', 'claude-code-acp'],
    nodeMajor: 22,
    envAllow: [
      'ANTHROPIC_*',
      'CLAUDE_CONFIG_DIR',
      'CLAUDE_CODE_*',
      'AWS_*',
      'GOOGLE_CLOUD_PROJECT',
      'GOOGLE_APPLICATION_CREDENTIALS',
      'CLOUD_ML_REGION',
    ],
    quietEnv: {
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_ERROR_REPORTING: '1',
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: 'false',
    },
    asking: { modeId: 'default', safe: ['default', 'plan'] },
    signIn: 'claude /login',
    install: 'npm install -g @agentclientprotocol/claude-agent-acp@0.101.0',
    sessions: '~/.claude/projects',
    trust: [
      { pattern: '.claude/**', what: 'hooks, permissions, commands and sub-agents of Claude Code' },
      { pattern: '.mcp.json', what: 'MCP servers, started with the session' },
    ],
    safeUntrusted: true,
    sessionMeta: { claudeCode: { options: { settingSources: [], strictMcpConfig: true } } },
  }),
  entry({
    id: 'codex',
    title: 'Codex',
    about: "OpenAI's coding agent, through its ACP adapter.",
    bins: ['codex-acp'],
    nodeMajor: 22,
    envAllow: [...openaiEnv, 'CODEX_HOME', 'CODEX_API_KEY'],
    quietEnv: { INITIAL_AGENT_MODE: 'read-only' },
    asking: { modeId: 'read-only', safe: ['read-only'] },
    authenticate: { methodId: 'api-key', whenEnv: ['CODEX_API_KEY', 'OPENAI_API_KEY'], first: false },
    signIn: 'codex login',
    install: 'npm install -g @agentclientprotocol/codex-acp@2.6.0',
    preferReject: ['decline', 'reject_permissions'],
    sessions: '~/.codex/sessions',
    trust: [{ pattern: '.codex/**', what: 'MCP servers and settings of Codex, started with the session' }],
  }),
  entry({
    id: 'gemini',
    title: 'Gemini CLI',
    about: "Google's coding agent.",
    bins: ['gemini'],
    // Never --skip-trust: an untrusted folder is what keeps its configuration from running.
    args: ['--acp'],
    envAllow: [
      'GEMINI_API_KEY',
      'GOOGLE_API_KEY',
      'GOOGLE_GEMINI_BASE_URL',
      'GOOGLE_CLOUD_PROJECT',
      'GOOGLE_CLOUD_LOCATION',
      'GOOGLE_APPLICATION_CREDENTIALS',
      'GOOGLE_GENAI_USE_VERTEXAI',
      'GEMINI_MODEL',
    ],
    quietEnv: { GEMINI_CLI_NO_RELAUNCH: 'true' },
    asking: { modeId: 'default', safe: ['default', 'plan'] },
    authenticate: { methodId: 'gemini-api-key', whenEnv: ['GEMINI_API_KEY'], first: true },
    signIn: 'gemini',
    install: 'npm install -g @google/gemini-cli@0.61.0',
    sessions: '~/.gemini/tmp',
    trust: [
      { pattern: '.gemini/**', what: 'hooks, tool permissions and MCP servers of Gemini, where it trusts the folder' },
      { pattern: '.env', what: 'variables Gemini reads at start' },
    ],
    safeUntrusted: true,
    worded: { in: 'title', after: [''], cutAt: null },
  }),
  entry({
    id: 'opencode',
    title: 'OpenCode',
    about: 'An open coding agent for many models.',
    bins: ['opencode'],
    args: ['acp'],
    envAllow: [
      ...openaiEnv,
      'ANTHROPIC_API_KEY',
      'GEMINI_API_KEY',
      'OPENROUTER_API_KEY',
      'OPENCODE_CONFIG',
      'OPENCODE_CONFIG_CONTENT',
      'OPENCODE_API_KEY',
    ],
    quietEnv: {
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_PROJECT_CONFIG: '1',
    },
    levelWhy:
      'OpenCode was told to ask before edits and commands, but cannot confirm it, and tools of MCP servers run unasked.',
    signIn: 'opencode auth login',
    install: 'npm install -g opencode-ai@1.18.33',
    sessions: '~/.local/share/opencode',
    trust: [
      { pattern: '.opencode/**', what: 'plugins of OpenCode: code that runs with the session' },
      { pattern: 'opencode.json', what: 'permissions, MCP servers and plugins of OpenCode' },
      { pattern: 'opencode.jsonc', what: 'permissions, MCP servers and plugins of OpenCode' },
    ],
  }),
  entry({
    id: 'pi',
    title: 'Pi',
    about: 'A small open coding agent, through its ACP adapter.',
    bins: ['pi-acp'],
    needs: ['pi'],
    nodeMajor: 22,
    envAllow: [...openaiEnv, 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY', 'PI_CODING_AGENT_DIR', 'PI_ACP_PI_COMMAND'],
    quietEnv: { PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0' },
    levelWhy: 'Pi has no permission system of its own: it asks only where an extension makes it.',
    signIn: 'pi',
    install: 'npm install -g @earendil-works/pi-coding-agent@1.6.0 pi-acp@0.0.34',
    sessions: '~/.pi/agent/sessions',
    trust: [{ pattern: '.pi/**', what: 'extensions of Pi, where it trusts the folder' }],
    safeUntrusted: true,
  }),
  entry({
    id: 'qwen',
    title: 'Qwen Code',
    about: "Alibaba's coding agent.",
    bins: ['qwen'],
    args: ['--acp', '--auth-type', 'openai', '--approval-mode', 'default'],
    nodeMajor: 22,
    envAllow: [...openaiEnv, 'DASHSCOPE_API_KEY'],
    asking: { modeId: 'default', safe: ['default', 'plan'] },
    authenticate: { methodId: 'openai', whenEnv: ['OPENAI_API_KEY'], first: false },
    signIn: 'qwen',
    install: 'npm install -g @qwen-code/qwen-code@0.24.4',
    sessions: '~/.qwen/projects',
    trust: [{ pattern: '.qwen/**', what: 'hooks, approval mode and MCP servers of Qwen Code' }],
    safeUntrusted: { homeFile: '.qwen/settings.json', path: ['security', 'folderTrust', 'enabled'] },
  }),
  entry({
    id: 'copilot',
    title: 'GitHub Copilot',
    about: "GitHub's coding agent.",
    bins: ['copilot'],
    args: ['--acp'],
    nodeMajor: 22,
    envAllow: ['COPILOT_*', 'GH_TOKEN', 'GITHUB_TOKEN', 'GH_HOST'],
    quietEnv: { COPILOT_AUTO_UPDATE: 'false' },
    asking: {
      modeId: copilotMode('agent'),
      safe: [copilotMode('agent'), copilotMode('plan')],
      locked: { allow_all: 'off' },
    },
    signIn: 'copilot login',
    install: 'npm install -g @github/copilot@1.0.102',
    sessions: '~/.copilot/session-state',
    trust: [
      { pattern: '.github/hooks/**', what: 'hooks of Copilot: code that runs with the session' },
      { pattern: '.mcp.json', what: 'MCP servers, started with the session' },
    ],
  }),
  entry({
    id: 'kimi',
    title: 'Kimi Code',
    about: "Moonshot's coding agent.",
    bins: ['kimi'],
    args: ['acp'],
    nodeMajor: 22,
    envAllow: [...openaiEnv, 'KIMI_*', 'MOONSHOT_API_KEY'],
    quietEnv: { KIMI_CODE_NO_AUTO_UPDATE: '1' },
    asking: { modeId: 'default', safe: ['default', 'plan'] },
    signIn: 'kimi login',
    install: 'npm install -g @moonshot-ai/kimi-code@2.1.0',
    sessions: '~/.kimi-code/sessions',
    trust: [
      { pattern: '.kimi-code/**', what: 'MCP servers and settings of Kimi Code' },
      { pattern: '.mcp.json', what: 'MCP servers, where the folder is trusted' },
    ],
    safeUntrusted: true,
    // 2.1.0 has permission rules in its settings, and does not read them.
    unaskedInRepository: true,
    worded: {
      in: 'content',
      after: ['Requesting approval to Running: ', 'Requesting approval to Starting background: '],
      cutAt: 50,
    },
  }),
];

/** An agent the operator added by command: everything unknown is assumed the worse way. */
export const customEntry = (id: string, title: string): CatalogueEntry =>
  entry({
    id,
    title,
    about: 'Added by you.',
    nodeMajor: 20,
    levelWhy: 'Nothing is known of when this program asks before it acts.',
    signIn: 'see its own documentation',
  });

/** For the chip, and for the list of agents, which knows no folder yet. */
export const unaskedWhy = (title: string): string =>
  `${title} writes files inside a git repository without asking, in any mode; it asks before commands and other writes.`;
