/** `bridge doctor`: what this machine has and lacks, and the mend for each. Starts nothing but version probes. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Refusal } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import { chooseHolding } from '../agents/containment.ts';
import { onPath } from '../agents/find.ts';
import { contradictionIn } from '../approvals/checkpoints.ts';
import { readPublicKey } from '../approvals/keys.ts';
import { loadAssets } from '../gate/assets.ts';
import { openLedgerReadOnly } from '../ledger/ledger.ts';
import { stateDirectories, type Directories } from '../ledger/paths.ts';
import { exits, read, type Verb } from './args.ts';
import { print, printJson, table } from './output.ts';
import { assetsDirectory } from './early.ts';

interface Finding {
  readonly what: string;
  readonly ok: boolean;
  readonly found: string;
  /** What to do, when something is missing. */
  readonly mend?: string;
  /** Without it the product still works, weaker. */
  readonly optional?: boolean;
}

const node = (): Finding => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const ok = major > 24 || (major === 24 && minor >= 15);
  return {
    what: 'Node',
    ok,
    found: process.versions.node,
    ...(ok ? {} : { mend: 'Install Node 24.15 or newer, or use "npm start".' }),
  };
};

const program = (what: string, name: string, mend: string): Finding => {
  const path = onPath(name, process.env['PATH'] ?? '');
  if (path === null) return { what, ok: false, found: 'not found', mend, optional: true };
  const ran = spawnSync(path, ['--version'], { encoding: 'utf8', timeout: limits.probeMs, env: {} });
  return { what, ok: true, found: (ran.stdout ?? '').split('\n')[0]?.trim() || path, optional: true };
};

const containment = (directories: Directories): Finding => {
  const holding = chooseHolding(
    onPath('bwrap', process.env['PATH'] ?? ''),
    [directories.private, directories.runtime],
    process.execPath,
  );
  const ok = holding.kind === 'bubblewrap';
  return {
    what: 'Containment',
    ok,
    found: holding.why,
    optional: true,
    ...(ok ? {} : { mend: 'Install bubblewrap (Debian: apt install bubblewrap).' }),
  };
};

const assets = (): Finding => {
  try {
    loadAssets(assetsDirectory);
    return { what: 'App', ok: true, found: 'built and intact' };
  } catch (error) {
    return {
      what: 'App',
      ok: false,
      found: error instanceof Error ? error.message : String(error),
      mend: 'npm run build',
    };
  }
};

const key = (directories: Directories): Finding => {
  try {
    const found = readPublicKey(join(directories.private, 'keys'));
    return { what: 'Receipt key', ok: true, found: found === null ? 'made at the first start' : found.keyId };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { what: 'Receipt key', ok: false, found: error.message };
  }
};

/** Whether the database still is the one that was signed (T47). */
const log = (directories: Directories): Finding[] => {
  const found = (ok: boolean, text: string): Finding[] => [{ what: 'Receipt log', ok, found: text }];
  if (!existsSync(join(directories.private, 'ledger.db'))) return [];
  try {
    const key = readPublicKey(join(directories.private, 'keys'));
    const ledger = openLedgerReadOnly(directories.private);
    try {
      const { read } = ledger;
      const bridgeId = read.meta('ledger.bridgeId') ?? '';
      const wrong = key === null ? null : contradictionIn(read, key.publicKeySpki, bridgeId, directories.private);
      return found(wrong === null, wrong?.sentence ?? `${read.logSize()} receipts, continues what was signed`);
    } finally {
      void ledger.close();
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return found(false, error.message);
  }
};

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const done = (is: boolean) => (): void => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', done(true));
    socket.once('error', done(false));
  });

const port = async (directories: Directories): Promise<Finding> => {
  const taken = await answers(limits.defaultPort);
  const own = existsSync(directories.controlSocket);
  const found = taken
    ? own
      ? 'in use, by a bridge of this state or another program'
      : 'in use by another program'
    : 'free';
  return {
    what: `Port ${limits.defaultPort}`,
    ok: !taken || own,
    found,
    ...(taken && !own ? { mend: 'Stop that program, or start with --port.' } : {}),
  };
};

export const doctor: Verb = {
  name: 'doctor',
  about: 'Check what this machine has, with the mend for what it lacks',
  help: `bridge doctor [--state DIR] [--json]

Example: bridge doctor`,
  async run(args) {
    const { values } = read(args, {});
    const directories = stateDirectories(values.state);
    const findings: Finding[] = [
      node(),
      { what: 'SQLite', ok: true, found: process.versions['sqlite'] ?? 'unknown' },
      assets(),
      containment(directories),
      program('git', 'git', 'Install git to see the commit in receipts.'),
      program('ripgrep', 'rg', 'Optional: makes searching files faster.'),
      await port(directories),
      key(directories),
      ...log(directories),
      { what: 'State', ok: true, found: directories.state },
    ];
    const ok = findings.every((each) => each.ok || each.optional === true);
    if (values.json === true) printJson({ ok, findings });
    else {
      table(
        findings.map((each) => [
          each.ok ? 'ok' : each.optional === true ? 'lacks' : 'WRONG',
          each.what,
          `${each.found}${each.mend === undefined ? '' : `  → ${each.mend}`}`,
        ]),
      );
      print(ok ? 'Ready.' : 'Not ready; see WRONG above.');
    }
    return ok ? exits.ok : exits.failed;
  },
};
