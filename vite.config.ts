import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig } from 'vite';
import config from './svelte.config.js';

export default defineConfig({
  root: 'web',
  plugins: [sveltekit(config)],
  worker: { format: 'es' },
  // Browsers that know light-dark(), popover and anchor positioning as written: nothing is rewritten for older ones.
  // Some grammars of the highlighter are large; each is a chunk of its own, loaded when such code is in view.
  build: { target: ['chrome125', 'firefox132', 'safari18.2'], chunkSizeWarningLimit: 1000 },
  server: { host: '127.0.0.1', port: 5173, strictPort: true, fs: { allow: ['../protocol', '../static'] } },
});
