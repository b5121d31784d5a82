/**
 * The languages that are coloured, and the names people write for them. The page imports a grammar when first needed; the
 * offline shell holds them all, so each is worth its size: C++ (800 kB) is coloured as C.
 */
export const grammars = {
  bash: () => import('shiki/langs/bash.mjs'),
  c: () => import('shiki/langs/c.mjs'),
  csharp: () => import('shiki/langs/csharp.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  html: () => import('shiki/langs/html.mjs'),
  ini: () => import('shiki/langs/ini.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  javascript: () => import('shiki/langs/javascript.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  make: () => import('shiki/langs/make.mjs'),
  markdown: () => import('shiki/langs/markdown.mjs'),
  php: () => import('shiki/langs/php.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  ruby: () => import('shiki/langs/ruby.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  svelte: () => import('shiki/langs/svelte.mjs'),
  swift: () => import('shiki/langs/swift.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  typescript: () => import('shiki/langs/typescript.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
} as const;
export type Language = keyof typeof grammars;

const names: Readonly<Record<string, Language>> = {
  sh: 'bash',
  shell: 'bash',
  zsh: 'bash',
  console: 'bash',
  shellscript: 'bash',
  h: 'c',
  cpp: 'c',
  cc: 'c',
  cxx: 'c',
  hpp: 'c',
  'c++': 'c',
  cs: 'csharp',
  'c#': 'csharp',
  patch: 'diff',
  dockerfile: 'docker',
  golang: 'go',
  htm: 'html',
  properties: 'ini',
  conf: 'ini',
  js: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  node: 'javascript',
  jsonc: 'json',
  json5: 'json',
  kt: 'kotlin',
  makefile: 'make',
  mk: 'make',
  md: 'markdown',
  mdx: 'markdown',
  py: 'python',
  python3: 'python',
  rb: 'ruby',
  rs: 'rust',
  jsx: 'tsx',
  ts: 'typescript',
  mts: 'typescript',
  cts: 'typescript',
  svg: 'xml',
  yml: 'yaml',
};

/** `ts`, `language-ts`, `src/date.ts` and `Dockerfile` all name one; null when there is none for it. */
export const languageOf = (hint: string): Language | null => {
  const word = hint.toLowerCase().replace(/^language-/, '');
  const last = word.slice(Math.max(word.lastIndexOf('/'), word.lastIndexOf('.')) + 1);
  for (const name of [word, last]) {
    if (Object.hasOwn(grammars, name)) return name as Language;
    const alias = Object.hasOwn(names, name) ? names[name] : undefined;
    if (alias !== undefined) return alias;
  }
  return null;
};
