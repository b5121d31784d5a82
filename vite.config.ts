import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig, type Plugin } from 'vite';
import config from './svelte.config.js';

/**
 * Kit asks for entries that export nothing but their own; a chunk that several parts share then cannot hold them, and the
 * first screen comes in some forty files. Each costs the browser and the bridge more than its bytes do.
 */
const sharedEntries: Plugin = {
  name: 'shared-entries',
  options: (options) => ({ ...options, preserveEntrySignatures: 'allow-extension' }),
};

/** Modules that are merged into few chunks, by who needs them; Svelte, Kit and the highlighter's grammars stay apart. */
const merged =
  /[\\/](web[\\/](state|link|text|cache|markdown|style|view)|protocol|node_modules[\\/](zod|idb|markdown-it|linkify-it|mdurl|uc\.micro|entities|punycode\.js|virtua|diff))[\\/]/;

export default defineConfig({
  root: 'web',
  plugins: [sveltekit(config), sharedEntries],
  worker: { format: 'es' },
  // Browsers that know light-dark(), popover and anchor positioning as written: nothing is rewritten for older ones.
  // Some grammars of the highlighter are large; each is a chunk of its own, loaded when such code is in view.
  build: {
    target: ['chrome125', 'firefox132', 'safari18.2'],
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      output: {
        // A merged chunk is named after everything it is for; the table of assets knows plain names only.
        sanitizeFileName: (name: string) => name.replace(/~.*/, ''),
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [{ name: 'part', test: merged, entriesAware: true, entriesAwareMergeThreshold: 24 * 1024 }],
        },
      },
    },
  },
  server: { host: '127.0.0.1', port: 5173, strictPort: true, fs: { allow: ['../protocol', '../static'] } },
});
