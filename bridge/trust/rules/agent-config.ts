/**
 * Configuration of agents, editors and containers (W-11): what runs by itself, where keys are sent, what is allowed
 * beforehand. Pure. JSON is read value by value, other formats line by line.
 */
import { leavesOf, type Leaf } from '../jsonc.ts';
import type { Lines } from '../words.ts';
import { commandHits } from './execution.ts';
import { near } from './near.ts';
import type { Hit, RuleId } from './table.ts';

/** Variables that move an agent's traffic and keys, or what its programs load (CVE-2026-21852). */
const moving =
  /^(?:\w*(?:BASE_URL|API_BASE|API_HOST|_ENDPOINT|_PROXY)|NODE_OPTIONS|NODE_EXTRA_CA_CERTS|NODE_TLS_REJECT_UNAUTHORIZED|NODE_PATH|LD_PRELOAD|LD_LIBRARY_PATH|DYLD_\w+|PYTHONPATH|PYTHONSTARTUP|PERL5OPT|RUBYOPT|BASH_ENV|ENV|PATH|PROMPT_COMMAND|GIT_SSH_COMMAND|GIT_EXEC_PATH|GIT_CONFIG\w*|GIT_EXTERNAL_DIFF|EDITOR|VISUAL|PAGER|ANTHROPIC_(?:AUTH_TOKEN|CUSTOM_HEADERS))$/i;

interface LeafRule {
  readonly path: RegExp;
  readonly rule: RuleId;
  readonly fits?: (value: Leaf['value']) => boolean;
  /** The value is a command line of its own. */
  readonly command?: true;
}
const isTrue = (value: Leaf['value']): boolean => value === true || value === 'true' || value === 'on';
const oneOf =
  (...words: string[]) =>
  (value: Leaf['value']): boolean =>
    typeof value === 'string' && words.includes(value.toLowerCase());

/** On the names from the root, joined by dots; in this order, the first that fits. */
const leafRules: readonly LeafRule[] = [
  { path: /(^|\.)hooks\..*\.(command|prompt|url|bash|powershell|run)$/i, rule: 'agent.hook', command: true },
  { path: /^hooks\.[\w-]+(\.\d+)?$/i, rule: 'agent.hook', command: true },
  { path: /(^|\.)(defaultMode|permissionMode|approvalMode|approval_policy|sandbox_mode|autoAcceptMode)$/i, rule: 'agent.permission', fits: oneOf('bypasspermissions', 'acceptedits', 'dontask', 'auto', 'yolo', 'auto-edit', 'auto_edit', 'autoedit', 'never', 'danger-full-access', 'full-auto', 'on') },
  { path: /(^|\.)(yolo|autoApprove|dangerouslySkipPermissions|skipDangerousModePermissionPrompt|autoAccept|chat\.tools\.(global\.)?autoApprove|chat\.tools\.terminal\.autoApprove)$/i, rule: 'agent.permission', fits: isTrue },
  { path: /^permission(\.\w+)*$/i, rule: 'agent.permission', fits: oneOf('allow') },
  { path: /(^|\.)(enableAllProjectMcpServers|trust|task\.allowAutomaticTasks|folderTrust\.enabled)$/i, rule: 'agent.allows', fits: isTrue },
  { path: /(^|\.)(permissions\.allow|tools\.allowed|allowedTools|coreTools|alwaysAllow|autoApprove|enabledMcpjsonServers|permissions\.additionalDirectories)\.\d+$/i, rule: 'agent.allows' },
  { path: /(^|\.)(mcpServers|mcp_servers|mcp|servers|context_servers)\..*(?<!\.env|\.headers)\.(command|url|httpUrl)(\.0)?$/i, rule: 'agent.mcp', command: true },
  { path: /(^|\.)(apiKeyHelper|awsAuthRefresh|awsCredentialExport|otelHeadersHelper|gcpAuthRefresh|statusLine\.command|fileSuggestion\.command|notify(\.\d+)?|toolDiscoveryCommand|toolCallCommand|tools\.(discovery|call)Command|formatter\..*\.command\.\d+|lsp\..*\.command\.\d+)$/i, rule: 'agent.command', command: true },
  { path: /(^|\.)(plugin|plugins|extensions|extraKnownMarketplaces|enabledPlugins)(\.[^.]+)*$/i, rule: 'agent.plugin', fits: (value) => value !== false },
  { path: /(^|\.)(initializeCommand|onCreateCommand|updateContentCommand|postCreateCommand|postStartCommand|postAttachCommand)(\.[^.]+)*$/i, rule: 'container.command', command: true },
  { path: /(^|\.)(terminal\.integrated\.(profiles|automationProfile|shell)[\w.]*|[\w.-]*(executablePath|\.path|interpreterPath|serverPath|\.command|pythonPath|tsdk|nodePath|\.runtime))$/i, rule: 'editor.program', fits: (value) => typeof value === 'string' && /^(\.{0,2}\/|\$\{workspace|node_modules\/|\.\w)/.test(value) && !/node_modules\/(typescript|@\w+\/typescript)/.test(value) },
  // What this list does not know by name, but is called so.
  { path: /(^|\.)\w*(command|cmd|exec|script|shell|program|hook)\w*(\.0)?$/i, rule: 'agent.command', fits: (value) => typeof value === 'string' && value !== '', command: true },
]; // prettier-ignore

const dotted = ({ path }: Leaf): string => path.join('.');

/** Values of variables may be keys: shown only where the value is what matters, an address or a file. */
const shownValue = (name: string, value: string): string =>
  /TOKEN|KEY|SECRET|PASSWORD|HEADER/i.test(name) ? '•••' : value.replace(/\/\/[^@/\s]*@/, '//•••@');

const leafHits = (leaf: Leaf, lines: Lines, isSettings: boolean): Hit[] => {
  const [path, line] = [dotted(leaf), lines.lineOf(leaf.at)];
  const value = String(leaf.value);
  const variable =
    /(?:^|\.)(?:env|remoteEnv|containerEnv|env_vars|shell_environment_policy\.set|terminal\.integrated\.env\.\w+)\.([^.]+)$/i.exec(
      path,
    )?.[1];
  if (variable !== undefined)
    return moving.test(variable)
      ? [
          {
            rule: 'agent.env',
            line,
            exact: `${variable}=${value}`,
            evidence: `${variable}=${shownValue(variable, value)}`,
          },
        ]
      : [];
  const known = isSettings ? leafRules.slice(0, -1) : leafRules;
  const found = known.find(({ path: fits, fits: holds }) => fits.test(path) && holds?.(leaf.value) !== false);
  if (found === undefined || leaf.value === null)
    return isSettings || typeof leaf.value !== 'string' ? [] : commandHits(value, line);
  const hit: Hit = { rule: found.rule, line, exact: `${path}: ${value}` };
  return [hit, ...(found.command === true && typeof leaf.value === 'string' ? commandHits(value, line) : [])];
};

/** All that a JSON configuration names; a command's words are joined, so that a sign over several of them is seen. */
const jsonHits = (isEditor: boolean, text: string, lines: Lines): Hit[] => {
  const { leaves, broken } = leavesOf(text);
  const hits = leaves.flatMap((leaf) => leafHits(leaf, lines, isEditor));
  const argument = /^(.*\.(?:args|command))\.\d+$/i;
  const joined = new Map<string, { words: string[]; line: number }>();
  for (const leaf of leaves) {
    const owner = argument.exec(dotted(leaf))?.[1]?.replace(/\.(args|command)$/i, '');
    const isCommand = /\.command$/i.test(dotted(leaf)) ? dotted(leaf).replace(/\.command$/i, '') : owner;
    if (isCommand === undefined || typeof leaf.value !== 'string') continue;
    const known = joined.get(isCommand) ?? { words: [], line: lines.lineOf(leaf.at) };
    known.words.push(leaf.value);
    joined.set(isCommand, known);
  }
  for (const { words, line } of joined.values()) if (words.length > 1) hits.push(...commandHits(words.join(' '), line));
  return broken ? [...hits, { rule: 'agent.unreadable', line: null, exact: text }] : hits;
};

/** tasks.json: what runs when the folder is opened, with its command. */
const taskHits = (text: string, lines: Lines): Hit[] => {
  const { leaves, broken } = leavesOf(text);
  const opened = leaves.filter((leaf) => /runOptions\.runOn$/i.test(dotted(leaf)) && leaf.value === 'folderOpen');
  const hits = opened.flatMap((leaf): Hit[] => {
    const task = dotted(leaf).replace(/\.runOptions\.runOn$/i, '');
    const own = leaves.filter((each) =>
      new RegExp(`^${task.replace(/[^\w]/g, '\\$&')}\\.(?:\\w+\\.)?(?:command|args\\.\\d+|script)$`).test(dotted(each)),
    );
    const command = own.map(({ value }) => String(value)).join(' ');
    const line = lines.lineOf((own[0] ?? leaf).at);
    return [{ rule: 'editor.task', line, exact: `runOn folderOpen: ${command}` }, ...commandHits(command, line)];
  });
  return broken ? [...hits, { rule: 'agent.unreadable', line: null, exact: text }] : hits;
};

/** TOML and the like: `key = value` under the last [section], as a JSON leaf would name it. */
const settingHits = (text: string, lines: Lines): Hit[] => {
  let section = '';
  const hits: Hit[] = [];
  for (const { at, slice } of near(text, /^[ \t]*(?=[[\w"'-])/gm, 2000, 0)) {
    const head = /^\s*\[+\s*([^\]\n]+?)\s*\]/.exec(slice)?.[1];
    if (head !== undefined) section = `${head.replace(/["']/g, '')}.`;
    const [, key, value = ''] = /^\s*["']?([\w.-]+)["']?\s*[=:]\s*(.*)$/.exec(slice) ?? [];
    if (key === undefined) continue;
    // An inline table names its own keys: { ANTHROPIC_BASE_URL = "…" }.
    const inline = [...value.matchAll(/["']?([\w-]+)["']?\s*=\s*("[^"]*"|'[^']*'|[\w.]+)/g)];
    const pairs: [string, string][] = value.startsWith('{')
      ? inline.map((each) => [`${key}.${each[1] ?? ''}`, each[2] ?? ''])
      : [[key, value]];
    for (const [name, raw] of pairs) {
      const plain = raw.trim().replace(/^["'](.*)["']$/, '$1');
      hits.push(
        ...leafHits(
          {
            path: `${section}${name}`.split('.'),
            value: plain === 'true' ? true : plain === 'false' ? false : plain,
            at: at + slice.search(/\S/),
          },
          lines,
          false,
        ),
      );
    }
  }
  return hits;
};

/** Files whose being there is what matters: an agent loads them as code. */
const isCode = (path: string): boolean =>
  /(^|\/)\.(opencode|claude|pi|cursor|gemini|qwen|codex)\/(.*\/)?(plugins?|extensions?|hooks?|tools?)\/.*\.([cm]?[jt]sx?|py|sh)$/i.test(
    path,
  );

export const agentHits = (path: string, text: string, lines: Lines): Hit[] => {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  if (name === '.envrc') {
    const first = near(text, /^[ \t]*[^\s#]/gm, 300, 0)[0];
    return first === undefined
      ? []
      : [{ rule: 'shell.envrc', line: lines.lineOf(first.at), exact: text, evidence: envrcLine(first.slice) }];
  }
  if (isCode(path)) return [{ rule: 'agent.plugin', line: 1, exact: text, evidence: path }];
  if (name === 'tasks.json' && /\.vscode\//i.test(path)) return taskHits(text, lines);
  if (/\.(json|jsonc|code-workspace)$/.test(name))
    return jsonHits(/\.vscode\/|\.code-workspace$/i.test(path), text, lines);
  if (/\.(toml|ya?ml|ini|cfg)$/.test(name)) return settingHits(text, lines);
  return [];
};

const envrcLine = (line: string): string =>
  line.replace(/^(\s*export\s+\w*(?:TOKEN|KEY|SECRET|PASSWORD)\w*=).*/i, '$1•••');
