import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig } from 'vite';
import config from './svelte.config.js';

export default defineConfig({
  root: 'web',
  plugins: [sveltekit(config)],
  worker: { format: 'es' },
  server: { host: '127.0.0.1', port: 5173, strictPort: true, fs: { allow: ['../protocol', '../static'] } },
});
