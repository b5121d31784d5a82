/**
 * What a review reads of a workspace, told from paths alone, and where it does not go. Pure. The rule not to break: what
 * configures an agent, git or a package manager is of a kind wherever it lies; only what nobody starts may be left out.
 */

export const kinds = ['agent', 'instruction', 'git', 'manifest', 'shell', 'env', 'infra', 'doc', 'source'] as const;
export type Kind = (typeof kinds)[number];

/** Kinds that start something or steer an agent: always read, whatever the bound on ordinary files. */
export const isSpecial = (kind: Kind): boolean => ['agent', 'instruction', 'git', 'manifest'].includes(kind);

/** Folders of installed dependencies and build results: nothing reads them when an agent starts, and they are huge. */
const skipped = /(^|\/)(node_modules|\.venv|venv|__pycache__|\.svelte-kit|\.next|\.nuxt|\.turbo|\.gradle|\.tox)$/;
export const isSkipped = (path: string): boolean => skipped.test(path);

/** Of `.git` only what git runs or is told to run; a nested repository's too. */
export const isGitInternal = (path: string): boolean => /(^|\/)\.git\/(?!config$|hooks$)[^/]+$/.test(path);

/** Tests, fixtures and examples: what they show is less likely to be meant, so a finding there weighs less. */
const aside = /(^|\/)(tests?|__tests__|spec|specs|fixtures?|__fixtures__|examples?|samples?|bench(marks?)?|demos?)\//;
export const isAside = (path: string): boolean => aside.test(path.toLowerCase());

/** In order: the first that fits. On lower-case paths, for on some disks case does not matter. */
const table: readonly (readonly [RegExp, Kind])[] = [
  [/(^|\/)\.git\/(config|config\.worktree|hooks\/[^/]+)$/, 'git'],
  [/(^|\/)\.gitmodules$/, 'git'],
  [/(^|\/)(agents|claude|gemini|qwen|codex|copilot)(\.local)?\.md$/, 'instruction'],
  [/(^|\/)(\.cursorrules|\.windsurfrules|\.clinerules|\.roorules|\.github\/copilot-instructions\.md)$/, 'instruction'],
  [
    /(^|\/)\.(claude|cursor|codex|gemini|opencode|pi|qwen|kimi-code|clinerules|windsurf)\/.*\.(md|mdc|txt)$/,
    'instruction',
  ],
  [/(^|\/)\.(claude|cursor|codex|gemini|opencode|pi|qwen|kimi-code|devcontainer|github\/hooks)\//, 'agent'],
  [
    /(^|\/)(\.mcp\.json|mcp\.json|opencode\.jsonc?|\.devcontainer\.json|\.envrc|\.kimi\.toml|\.aider\.conf\.yml)$/,
    'agent',
  ],
  [/(^|\/)\.vscode\/(tasks|settings|launch|mcp)\.json$/, 'agent'],
  [/\.code-workspace$/, 'agent'],
  [/(^|\/)(package\.json|composer\.json|\.npmrc|\.yarnrc\.yml|\.pnpmfile\.cjs|binding\.gyp)$/, 'manifest'],
  [/(^|\/)\.env(\.[\w.-]+)?$/, 'env'],
  [/\.(sh|bash|zsh|ksh|fish|ps1|bat|cmd)$/, 'shell'],
  [
    /(^|\/)((docker|container|make|just)file[\w.-]*|gnumakefile|\.github\/workflows\/[^/]+\.ya?ml|\.gitlab-ci\.yml)$/,
    'shell',
  ],
  [/\.(sql|tf|tfvars|hcl)$/, 'infra'],
  [/\.(md|mdx|markdown|rst|adoc|txt)$/, 'doc'],
  [/\.([cm]?[jt]sx?|svelte|vue|astro|py|rb|go|php|java|kt|rs|swift|cs|pl|lua|ex|exs)$/, 'source'],
];

export const kindOf = (path: string): Kind | null => {
  const folded = path.normalize('NFC').toLowerCase();
  if (folded.endsWith('.sample') || folded.endsWith('.d.ts') || folded.endsWith('.min.js')) return null;
  return table.find(([pattern]) => pattern.test(folded))?.[1] ?? null;
};
