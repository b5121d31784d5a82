import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

const root = fileURLToPath(new URL('..', import.meta.url));

/** One project per ring: `node` for protocol and bridge on real parts, `web` for rune classes and pure view code. */
export default defineConfig({
  test: {
    root,
    testTimeout: 20_000,
    // Vitest leaves one of two cores unused by itself; most of what is tested waits for processes.
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'node',
          root,
          include: [
            'tests/{house,protocol,gate,ledger,conversations,agents,approvals,files,trust,terminals,git,cli,bridge}/**/*.test.ts',
          ],
          environment: 'node',
          pool: 'forks',
          // Hundreds of real processes on a shared machine: one more try there, none at a desk.
          retry: process.env['CI'] === undefined ? 0 : 1,
          // Real processes on a machine that may run much else beside them: patience costs nothing where all is well.
          testTimeout: 90_000,
          hookTimeout: 90_000,
        },
      },
      {
        plugins: [svelte({ configFile: false, compilerOptions: { runes: true } })],
        resolve: { conditions: ['browser'] },
        test: {
          name: 'web',
          root,
          include: ['tests/web/**/*.test.ts'],
          environment: 'node',
        },
      },
    ],
  },
});
