/**
 * How each real agent is made to work without account or network (agents.md §4): a fresh home, its own settings pointed
 * at the model stub, and an environment made from nothing. The same recipe serves the raw test and the whole bridge:
 * give the bridge `env` and it finds the program on PATH and the settings in HOME.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { installAgent, type RealAgentId } from './install.ts';

export interface Prepared {
  readonly id: RealAgentId;
  readonly command: string;
  readonly args: readonly string[];
  /** Whole: nothing else of this process's environment is needed. */
  readonly env: Readonly<Record<string, string>>;
  /** Settings files written, absolute. */
  readonly files: readonly string[];
  /** ACP authentication asked of each new process, or null. */
  readonly authenticate: { readonly methodId: string } | null;
}

interface Recipe {
  readonly args: readonly string[];
  readonly env: (stubUrl: string, home: string) => Readonly<Record<string, string>>;
  /** Path below the home, and content. */
  readonly settings: (stubUrl: string) => readonly (readonly [path: string, content: string])[];
  readonly authenticate?: { readonly methodId: string };
}

const recipes: Readonly<Record<RealAgentId, Recipe>> = {
  kimi: {
    args: ['acp'],
    env: () => ({ KIMI_CODE_NO_AUTO_UPDATE: '1' }),
    settings: (stubUrl) => [
      [
        '.kimi-code/config.toml',
        [
          'default_model = "mock"',
          '[providers.mock]',
          'type = "openai"',
          `base_url = "${stubUrl}/v1"`,
          'api_key = "mock"',
          '[models.mock]',
          'provider = "mock"',
          'model = "mock-model"',
          'max_context_size = 100000',
          '',
        ].join('\n'),
      ],
    ],
  },
  gemini: {
    args: ['--acp'],
    env: (stubUrl) => ({ GEMINI_API_KEY: 'mock', GOOGLE_GEMINI_BASE_URL: stubUrl, GEMINI_CLI_NO_RELAUNCH: 'true' }),
    settings: () => [
      [
        '.gemini/settings.json',
        JSON.stringify({
          privacy: { usageStatisticsEnabled: false },
          telemetry: { enabled: false },
          general: { disableAutoUpdate: true },
          model: { name: 'gemini-2.5-pro' },
        }),
      ],
    ],
    authenticate: { methodId: 'gemini-api-key' },
  },
  claude: {
    args: [],
    env: (stubUrl) => ({ ANTHROPIC_BASE_URL: stubUrl, ANTHROPIC_API_KEY: 'sk-ant-mock' }),
    settings: () => [],
  },
  codex: {
    args: [],
    // Its home must not lie below TMPDIR: it makes no sandbox helpers there.
    env: (_, home) => ({ TMPDIR: join(home, 'tmp') }),
    settings: (stubUrl) => [
      [
        '.codex/config.toml',
        [
          'model = "gpt-5.5"',
          'model_provider = "mock"',
          'check_for_update_on_startup = false',
          '[features]',
          'plugins = false',
          'apps = false',
          '[analytics]',
          'enabled = false',
          '[model_providers.mock]',
          'name = "Mock"',
          `base_url = "${stubUrl}/v1"`,
          'wire_api = "responses"',
          '',
        ].join('\n'),
      ],
      ['tmp/.keep', ''],
    ],
  },
  opencode: {
    args: ['acp'],
    env: () => ({}),
    settings: (stubUrl) => [
      [
        '.config/opencode/opencode.json',
        JSON.stringify({
          model: 'mock/mock-model',
          small_model: 'mock/mock-model',
          enabled_providers: ['mock'],
          provider: {
            mock: {
              npm: '@ai-sdk/openai-compatible',
              name: 'Mock',
              options: { baseURL: `${stubUrl}/v1`, apiKey: 'mock' },
              models: { 'mock-model': { name: 'Mock', tool_call: true, limit: { context: 100_000, output: 8000 } } },
            },
          },
        }),
      ],
    ],
  },
  pi: {
    args: [],
    env: () => ({}),
    settings: (stubUrl) => [
      [
        '.pi/agent/models.json',
        JSON.stringify({
          providers: {
            mock: {
              baseUrl: `${stubUrl}/v1`,
              api: 'openai-completions',
              apiKey: 'mock',
              models: [{ id: 'mock-model' }],
            },
          },
        }),
      ],
      [
        '.pi/agent/settings.json',
        JSON.stringify({ defaultProvider: 'mock', defaultModel: 'mock-model', quietStartup: true }),
      ],
      // Pi has no permission system; this is how its users give it one.
      [
        '.pi/agent/extensions/gate.js',
        `export default (pi) => pi.on('tool_call', async ({ toolName, toolCallId, input }, { ui }) => {
  if (!['write', 'edit', 'bash'].includes(toolName)) return;
  if (!(await ui.confirm(toolName, JSON.stringify({ toolCallId, input })))) return { block: true, reason: 'denied' };
});
`,
      ],
    ],
  },
  qwen: {
    args: ['--acp', '--auth-type', 'openai', '--approval-mode', 'default'],
    env: (stubUrl) => ({ OPENAI_API_KEY: 'mock', OPENAI_BASE_URL: `${stubUrl}/v1`, OPENAI_MODEL: 'mock-model' }),
    settings: () => [
      [
        '.qwen/settings.json',
        JSON.stringify({
          privacy: { usageStatisticsEnabled: false },
          general: { enableAutoUpdate: false },
          security: { folderTrust: { enabled: true } },
        }),
      ],
    ],
  },
  copilot: {
    args: ['--acp'],
    env: (stubUrl) => ({
      COPILOT_PROVIDER_BASE_URL: `${stubUrl}/v1`,
      COPILOT_PROVIDER_API_KEY: 'mock',
      COPILOT_MODEL: 'mock-model',
      COPILOT_OFFLINE: 'true',
    }),
    settings: () => [],
  },
};

/**
 * Installs the agent where needed and writes its settings below `home`, which must exist and be empty of them.
 * `skipped` says in full why it cannot be used.
 */
export const prepareAgent = async (
  id: RealAgentId,
  where: { readonly home: string; readonly stubUrl: string },
): Promise<Prepared | { readonly skipped: string }> => {
  const installed = await installAgent(id);
  if ('skipped' in installed) return installed;
  const recipe = recipes[id];
  const files = recipe.settings(where.stubUrl).map(([path, content]) => {
    const file = join(where.home, path);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, content, { mode: 0o600 });
    return file;
  });
  const env = {
    PATH: [dirname(process.execPath), dirname(installed.bin), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
    HOME: where.home,
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    ...recipe.env(where.stubUrl, where.home),
  };
  return { id, command: installed.bin, args: recipe.args, env, files, authenticate: recipe.authenticate ?? null };
};
