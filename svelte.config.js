// One place for the Svelte and Kit options. SvelteKit 3 reads no config file by itself; vite.config.ts passes this to
// the plugin. It may lie here because Vite's root is `web/`.
import adapter from '@sveltejs/adapter-static';

/** @type {import('@sveltejs/kit/vite').Config} */
export default {
  compilerOptions: { runes: true },
  adapter: adapter({ pages: 'build', assets: 'build', fallback: 'index.html', strict: true }),
  files: { src: '.', assets: '../static' },
  serviceWorker: { register: false },
  paths: { relative: false },
  // The build script sets a hash of what was built; never a clock, so that builds repeat.
  version: { name: process.env.APP_VERSION ?? 'dev', pollInterval: 0 },
};
