import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bridge, temporary } from './process.ts';

describe('the cache of compiled code runs as code (spec 11, row 1)', () => {
  let state: { path: string; remove(): void };
  beforeEach(() => {
    state = temporary('beginning');
  });
  afterEach(() => state.remove());
  const cache = (): string => join(state.path, 'state', 'private', 'compile-cache');

  it('lies in the private directory of the state that is named', async () => {
    mkdirSync(join(state.path, 'state', 'private'), { recursive: true, mode: 0o700 });
    await bridge(['verify', '--all', '--state', join(state.path, 'state')]);
    expect(existsSync(cache())).toBe(true);
  });

  it('makes no state for what only looks', async () => {
    const env = { HOME: state.path, XDG_STATE_HOME: '' };
    for (const args of [[], ['help'], ['start', '--help'], ['nonsense'], ['verify', '--help']])
      await bridge(args, { env });
    expect(existsSync(join(state.path, '.local'))).toBe(false);
  });

  it('is not used where others could put something into it', async () => {
    mkdirSync(join(state.path, 'state', 'private'), { recursive: true, mode: 0o700 });
    chmodSync(join(state.path, 'state', 'private'), 0o777);
    const ran = await bridge(['verify', '--all', `--state=${join(state.path, 'state')}`]);
    expect(ran.stderr).toContain('chmod 700');
    expect(existsSync(cache())).toBe(false);
  });
});
