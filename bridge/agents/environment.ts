/**
 * The environment of an agent, chosen name by name from the bridge's (L-34): what is not on the list does not exist for
 * the agent, whatever it is called. Adds the quiet settings and the marker; quirks that live in variables are here too.
 * Used by registry.ts. Pure.
 */
import { delimiter, dirname } from 'node:path';
import { commonEnv, type CatalogueEntry } from './catalogue.ts';
import { markerName } from './procfs.ts';

/** A pattern is a name, or the beginning of one and `*`. */
export const matches = (name: string, pattern: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;

/** OpenCode asks only where its configuration says so; ours is laid over the operator's, which keeps the rest. */
const openCodeConfig = (given: string | undefined): string => {
  let config: unknown = null;
  try {
    config = JSON.parse(given ?? '{}');
  } catch {
    // Not JSON: OpenCode would refuse it as well, and asking matters more.
  }
  const own = typeof config === 'object' && config !== null && !Array.isArray(config) ? config : {};
  return JSON.stringify({ ...own, autoupdate: false, share: 'disabled', permission: { edit: 'ask', bash: 'ask' } });
};

export interface AgentEnvironment {
  readonly env: Readonly<Record<string, string>>;
  /** Names, for receipts and the operator; values are shown nowhere. */
  readonly names: readonly string[];
  /** Values that must not be read back out of stderr. */
  readonly secrets: readonly string[];
}

export const looksSecret = /key|token|secret|password|credential/i;

/**
 * `added` are variables the operator gave for a custom agent; they win over what is passed on, never over the marker.
 * `first` is put first on PATH, so that a script's children find the interpreter that runs it.
 */
export const agentEnvironment = (
  entry: CatalogueEntry,
  bridgeEnv: Readonly<Record<string, string | undefined>>,
  options: {
    marker: string;
    interpreter: string | null;
    cwd: string | null;
    added: readonly { name: string; value: string }[];
  },
): AgentEnvironment => {
  const allowed = [...commonEnv, ...entry.envAllow];
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(bridgeEnv)) {
    if (value !== undefined && allowed.some((pattern) => matches(name, pattern))) env[name] = value;
  }
  Object.assign(env, entry.quietEnv, { TERM: 'dumb', NO_COLOR: '1' });
  if (entry.id === 'opencode') env['OPENCODE_CONFIG_CONTENT'] = openCodeConfig(env['OPENCODE_CONFIG_CONTENT']);
  for (const { name, value } of options.added) env[name] = value;
  if (options.interpreter !== null)
    env['PATH'] = [dirname(options.interpreter), env['PATH'] ?? ''].filter((part) => part !== '').join(delimiter);
  if (options.cwd !== null) env['PWD'] = options.cwd;
  env[markerName] = options.marker;
  return {
    env,
    names: Object.keys(env).sort(),
    secrets: Object.entries(env).flatMap(([name, value]) => (looksSecret.test(name) ? [value] : [])),
  };
};
