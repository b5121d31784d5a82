/**
 * Real agents, unmodified, of exact versions, installed on demand into a cache outside the checkout. A registry that
 * cannot give one is a reason to skip, said in full; never a reason to pass.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

export const realAgents = {
  kimi: { packages: ['@moonshot-ai/kimi-code@2.1.0'], bin: 'kimi', version: '2.1.0' },
  gemini: { packages: ['@google/gemini-cli@0.61.0'], bin: 'gemini', version: '0.61.0' },
  claude: { packages: ['@agentclientprotocol/claude-agent-acp@0.101.0'], bin: 'claude-agent-acp', version: '0.101.0' },
  codex: { packages: ['@agentclientprotocol/codex-acp@2.6.0'], bin: 'codex-acp', version: '2.6.0' },
  opencode: { packages: ['opencode-ai@1.18.33'], bin: 'opencode', version: '1.18.33' },
  pi: { packages: ['@earendil-works/pi-coding-agent@1.6.0', 'pi-acp@0.0.34'], bin: 'pi-acp', version: '1.6.0' },
  qwen: { packages: ['@qwen-code/qwen-code@0.24.4'], bin: 'qwen', version: '0.24.4' },
  copilot: { packages: ['@github/copilot@1.0.102'], bin: 'copilot', version: '1.0.102' },
} as const;
export type RealAgentId = keyof typeof realAgents;

export type Installed = { readonly bin: string } | { readonly skipped: string };

/** `$COUNTERSIGN_AGENT_CACHE`, else below the XDG cache directory. */
export const agentCache = (env: NodeJS.ProcessEnv = process.env): string =>
  env['COUNTERSIGN_AGENT_CACHE'] ?? join(env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'countersign', 'agents');

/** The directory of the Node that runs this, first on PATH: under an older one npm silently picks older majors. */
export const pathWithNode = (env: NodeJS.ProcessEnv = process.env): string =>
  [dirname(process.execPath), env['PATH'] ?? '/usr/bin:/bin'].join(delimiter);

const installMs = 240_000;

const attempts = new Map<RealAgentId, Promise<Installed>>();

/** Path of the agent's program, installing it when it is not in the cache; or why that did not work, found out once. */
export const installAgent = (id: RealAgentId): Promise<Installed> => {
  const attempt = attempts.get(id) ?? install(id);
  attempts.set(id, attempt);
  return attempt;
};

const install = async (id: RealAgentId): Promise<Installed> => {
  const { packages, bin, version } = realAgents[id];
  const directory = join(agentCache(), `${id}@${version}`);
  const program = join(directory, 'node_modules', '.bin', bin);
  if (existsSync(program)) return { bin: program };
  // Installed beside and renamed, so that a broken or a simultaneous install is never taken for a whole one.
  const partial = `${directory}.partial-${process.pid}`;
  mkdirSync(partial, { recursive: true });
  try {
    const failure = await npmInstall(partial, packages);
    if (failure !== null)
      return { skipped: `skipped, because npm could not install ${packages.join(' ')}: ${failure}` };
    if (!existsSync(join(partial, 'node_modules', '.bin', bin)))
      return { skipped: `skipped, because ${packages.join(' ')} brings no program "${bin}"` };
    if (!existsSync(directory)) renameSync(partial, directory);
    return { bin: program };
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
};

/** Null when it worked, otherwise the last thing npm said. */
const npmInstall = (prefix: string, packages: readonly string[]): Promise<string | null> => {
  // What an outer npm run says about its own project must not reach this one; its registry and proxy settings must.
  const outer = /^npm_(package_|lifecycle_|config_(local_prefix|prefix|global|omit|include|ignore_scripts|save)$)/;
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !outer.test(name)));
  const args = [
    'install',
    '--prefix',
    prefix,
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    '--fetch-retries=1',
    '--fetch-retry-mintimeout=1000',
    '--fetch-retry-maxtimeout=5000',
    ...packages,
  ];
  const child = spawn('npm', args, {
    env: { ...env, PATH: pathWithNode() },
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: prefix,
    timeout: installMs,
    killSignal: 'SIGKILL',
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4000);
  });
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve(null);
      const lines = said.split('\n').filter((line) => /\S/.test(line) && !/complete log|^npm error\s*$/.test(line));
      resolve(
        signal === null
          ? (lines.slice(0, 3).join(' ') || `exit code ${code}`).replaceAll('npm error ', '').slice(0, 300)
          : `it took longer than ${installMs / 1000} s`,
      );
    });
  });
};
