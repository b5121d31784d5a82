import { existsSync } from 'node:fs';
import { defineConfig } from '@playwright/test';

const known = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const chromium = process.env['CHROMIUM'] ?? known.find((path) => existsSync(path));
const root = process.getuid?.() === 0;

/** A real Chromium of the system; each test starts its own bridge on a free port with its own state. */
export default defineConfig({
  testDir: 'e2e',
  fullyParallel: false,
  workers: 2,
  // What passes at the second try is reported as flaky.
  retries: process.env['CI'] === undefined ? 0 : 1,
  timeout: 90_000,
  expect: { timeout: 10_000 },
  outputDir: '../test-results',
  use: {
    browserName: 'chromium',
    viewport: { width: 1440, height: 900 },
    launchOptions: {
      ...(chromium === undefined ? {} : { executablePath: chromium }),
      args: [
        ...(root ? ['--no-sandbox'] : []),
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--no-first-run',
        '--disable-quic',
      ],
    },
  },
});
