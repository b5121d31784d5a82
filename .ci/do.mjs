// `npm start` and `npm test`, each the only command on a fresh clone. Plain JavaScript that Node 18 can run: it installs
// and builds what is missing, then hands over to the pinned Node. No pre-scripts: `ignore-scripts` would skip those.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [task = '', ...rest] = process.argv.slice(2);
const say = (line) => process.stderr.write(`${line}\n`);
const fail = (line) => {
  say(line);
  process.exit(1);
};

/** Runs to its end with our output; ends us when it fails. */
const must = (command, args, options = {}) => {
  const ran = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options });
  if (ran.status !== 0) fail(`Failed: ${[command.split('/').pop(), ...args].join(' ').slice(0, 200)}`);
};

const hashFiles = (paths) => {
  const hash = createHash('sha256');
  const add = (path) => {
    const full = join(root, path);
    if (!existsSync(full)) return;
    if (statSync(full).isDirectory()) {
      for (const name of readdirSync(full).sort()) {
        if (name !== 'node_modules' && name !== '.svelte-kit') add(join(path, name));
      }
      return;
    }
    hash.update(path).update('\0').update(readFileSync(full)).update('\0');
  };
  for (const path of paths) add(path);
  return hash.digest('hex');
};

const pinnedNode = () => {
  const local = join(root, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
  if (existsSync(local)) return local;
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 24 || (major === 24 && minor >= 15)) return process.execPath;
  return null;
};

const install = () => {
  const stamp = join(root, 'node_modules', '.countersign-lock');
  const lock = hashFiles(['package-lock.json']);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  say('Installing the locked packages (once) …');
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const npm = process.env.npm_execpath;
  if (npm === undefined) must('npm', args);
  else must(process.execPath, [npm, ...args]);
  writeFileSync(stamp, lock);
};

const sources = [
  'web',
  'protocol',
  'static',
  'package-lock.json',
  'svelte.config.js',
  'vite.config.ts',
  '.ci/assets.mjs',
];

const build = (node) => {
  const revision = hashFiles(sources).slice(0, 16);
  const table = join(root, 'build', 'assets.json');
  if (existsSync(table) && JSON.parse(readFileSync(table, 'utf8')).revision === revision) return;
  say('Building the app …');
  const env = { ...process.env, APP_VERSION: revision };
  must(node, ['node_modules/vite/bin/vite.js', 'build', '--logLevel', 'error'], { env });
  must(node, ['.ci/assets.mjs', revision]);
};

const browser = () => {
  const known = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  const found = [process.env.CHROMIUM, ...known].find((path) => path && existsSync(path));
  if (found) return found;
  const packages = ['install', '-y', '--no-install-recommends', 'chromium', 'fonts-liberation'];
  const byHand = `apt-get ${packages.join(' ')}`;
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    fail(`The browser tests need Chromium. Install it (Debian: sudo ${byHand}) or set CHROMIUM to its path.`);
  }
  say('Installing Chromium for the browser tests …');
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync('apt-get', ['update', '-qq'], { stdio: 'ignore', env });
  must('apt-get', ['-qq', '-o', 'DPkg::Lock::Timeout=300', ...packages], { env, stdio: ['ignore', 'ignore', 2] });
  return known[0];
};

/** One step of the suite; answers how many passed and failed. */
const step = (name, node, args, report) => {
  say(`\n== ${name}`);
  const env = {
    ...process.env,
    PATH: `${join(root, 'node_modules', '.bin')}:${process.env.PATH}`,
    ...(report?.env ?? {}),
  };
  const ran = spawnSync(node, args, { cwd: root, stdio: ['ignore', 1, 2], env });
  const counts =
    report === undefined
      ? { passed: ran.status === 0 ? 1 : 0, failed: ran.status === 0 ? 0 : 1, skipped: 0 }
      : report.read();
  // A runner that died before its report, or failed outside a test, is a failure of its own.
  if (ran.status !== 0 && counts.failed === 0) counts.failed = 1;
  return counts;
};

const test = (node) => {
  const chromium = browser();
  const scratch = mkdtempSync(join(tmpdir(), 'countersign-test-'));
  const bin = (path) => join('node_modules', path);
  const unit = join(scratch, 'unit.json');
  const e2e = join(scratch, 'e2e.json');
  const readUnit = () => {
    if (!existsSync(unit)) return { passed: 0, failed: 1, skipped: 0 };
    const report = JSON.parse(readFileSync(unit, 'utf8'));
    return {
      passed: report.numPassedTests,
      failed: report.numFailedTests + (report.success ? 0 : report.numFailedTests === 0 ? 1 : 0),
      skipped: report.numPendingTests,
    };
  };
  const readE2e = () => {
    if (!existsSync(e2e)) return { passed: 0, failed: 1, skipped: 0 };
    const { stats } = JSON.parse(readFileSync(e2e, 'utf8'));
    if (stats.flaky > 0) say(`${stats.flaky} browser tests passed at the second try only.`);
    return { passed: stats.expected + stats.flaky, failed: stats.unexpected, skipped: stats.skipped };
  };
  const only = rest[0];
  const wanted = (name) => only === undefined || only === name;
  const results = [];
  if (wanted('lint')) {
    results.push(step('lint', node, [bin('eslint/bin/eslint.js'), '-c', '.ci/eslint.config.js', '.']));
    results.push(
      step('format', node, [
        bin('prettier/bin/prettier.cjs'),
        '--ignore-path',
        '.ci/prettierignore',
        '--check',
        '--log-level',
        'warn',
        '.',
      ]),
    );
  }
  if (wanted('types')) {
    results.push(step('types: protocol', node, [bin('typescript/bin/tsc'), '-p', 'protocol']));
    results.push(step('types: bridge', node, [bin('typescript/bin/tsc'), '-p', 'tsconfig.json']));
    results.push(step('types: tests', node, [bin('typescript/bin/tsc'), '-p', 'tests']));
    spawnSync(node, [bin('@sveltejs/kit/svelte-kit.js'), 'sync'], { cwd: join(root), stdio: 'inherit' });
    results.push(
      step('types: web', node, [
        bin('svelte-check/bin/svelte-check'),
        '--tsconfig',
        'web/tsconfig.json',
        '--threshold',
        'error',
      ]),
    );
    results.push(
      step('types: service worker', node, [
        bin('typescript/bin/tsc'),
        '-p',
        'web/service-worker/tsconfig.json',
        '--noEmit',
      ]),
    );
  }
  if (wanted('unit')) {
    results.push(
      step(
        'unit',
        node,
        [
          bin('vitest/vitest.mjs'),
          'run',
          '--config',
          'tests/vitest.config.ts',
          '--reporter=dot',
          '--reporter=json',
          `--outputFile.json=${unit}`,
        ],
        { read: readUnit },
      ),
    );
  }
  if (wanted('e2e')) {
    results.push(
      step(
        'browser',
        node,
        [bin('@playwright/test/cli.js'), 'test', '--config', 'tests/playwright.config.ts', '--reporter=list,json'],
        {
          env: { CHROMIUM: chromium, PLAYWRIGHT_JSON_OUTPUT_NAME: e2e },
          read: readE2e,
        },
      ),
    );
  }
  rmSync(scratch, { recursive: true, force: true });
  const total = results.reduce(
    (sum, one) => ({
      passed: sum.passed + one.passed,
      failed: sum.failed + one.failed,
      skipped: sum.skipped + one.skipped,
    }),
    { passed: 0, failed: 0, skipped: 0 },
  );
  process.stdout.write(
    `\n${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ''}\n`,
  );
  process.exit(total.failed === 0 ? 0 : 1);
};

install();
const node = pinnedNode();
if (node === null)
  fail(
    `Countersign needs Node 24.15 or newer; this is ${process.versions.node} and no packaged Node exists for ${process.platform}-${process.arch}.`,
  );

if (task === 'start') {
  build(node);
  const child = spawn(node, ['bridge/main.ts', 'start', ...rest], {
    cwd: root,
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 1));
} else if (task === 'build') {
  build(node);
} else if (task === 'test') {
  build(node);
  test(node);
} else {
  fail('usage: node .ci/do.mjs start|build|test [lint|types|unit|e2e]');
}
