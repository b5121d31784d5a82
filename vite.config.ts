import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig, type Plugin } from 'vite';
import config from './svelte.config.js';

/** What each module imports before it runs; filled while the build reads them. */
const imports = new Map<string, readonly string[]>();

/**
 * The shell, which every page has, is one file. Left to itself the build makes some forty files of a first screen, and
 * each costs the browser and the bridge more than its bytes do. Kit asks for entries that export nothing but their own;
 * what several of them share could then not be one file.
 */
const oneShell: Plugin = {
  name: 'one-shell',
  options: (options) => ({ ...options, preserveEntrySignatures: 'allow-extension' }),
  moduleParsed: ({ id, importedIds }) => void imports.set(id, importedIds),
};

/** Svelte and Kit stay apart: they must run before what is theirs to start. */
const isOurs = (id: string): boolean =>
  !/node_modules[\\/](svelte|@sveltejs|esm-env|clsx|devalue)[\\/]|\.svelte-kit|^\0/.test(id);

/** Whether the layout needs a module before it runs; asked only once the build has read them all. */
const isShell = (() => {
  let shell: Set<string> | null = null;
  return (id: string): boolean => {
    if (shell === null) {
      shell = new Set([...imports.keys()].filter((file) => /web[\\/]routes[\\/]\+layout\.svelte$/.test(file)));
      for (const each of shell) for (const next of imports.get(each) ?? []) shell.add(next);
    }
    return isOurs(id) && shell.has(id);
  };
})();

export default defineConfig({
  root: 'web',
  plugins: [sveltekit(config), oneShell],
  worker: { format: 'es' },
  // Browsers that know light-dark(), popover and anchor positioning as written: nothing is rewritten for older ones.
  // Some grammars of the highlighter are large; each is a chunk of its own, loaded when such code is in view.
  build: {
    target: ['chrome125', 'firefox132', 'safari18.2'],
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      output: { codeSplitting: { includeDependenciesRecursively: false, groups: [{ name: 'shell', test: isShell }] } },
    },
  },
  server: { host: '127.0.0.1', port: 5173, strictPort: true, fs: { allow: ['../protocol', '../static'] } },
});
