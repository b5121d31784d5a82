/** G-40: unmodified real agents and the model stub prove each other on raw ACP; the whole bridge is tried elsewhere. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, type TestContext } from 'vitest';
import { startModelStub } from '../model-stub/server.ts';
import { drive, type Driver } from './driver.ts';
import { prepareAgent } from './prepare.ts';

const cleanups: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A started agent with a session in a fresh workspace; skips the test, with the reason, where there is no agent. */
const start = async (id: 'kimi' | 'gemini', skip: TestContext['skip']) => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'countersign-real-')));
  const [home, workspace] = [join(base, 'home'), join(base, 'ws')];
  for (const folder of [home, workspace]) mkdirSync(folder);
  const stub = await startModelStub();
  cleanups.push(
    () => rmSync(base, { recursive: true, force: true, maxRetries: 5 }),
    () => stub.close(),
  );
  const agent = await prepareAgent(id, { home, stubUrl: stub.url });
  if ('skipped' in agent) {
    // The default reporter counts skips without their notes, and a skip must say why.
    process.stderr.write(`${id}: ${agent.skipped}\n`);
    return skip(agent.skipped);
  }
  const driver = drive(agent, workspace);
  cleanups.push(() => driver.stop());
  const capabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };
  const hello = await driver.request('initialize', { protocolVersion: 1, clientCapabilities: capabilities });
  if (agent.authenticate !== null) await driver.request('authenticate', { ...agent.authenticate });
  const { sessionId } = await driver.request('session/new', { cwd: workspace, mcpServers: [] });
  const prompt = (text: string) => driver.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  return { driver, stub, workspace, hello, sessionId, prompt };
};

const isChunk = (update: Driver['updates'][number]): boolean => update['sessionUpdate'] === 'agent_message_chunk';

describe.each(['kimi', 'gemini'] as const)('%s, unmodified, on the model stub', (id) => {
  test(
    'streams text, writes what is allowed, runs a command that is allowed',
    { timeout: 300_000 },
    async ({ skip }) => {
      const { driver, workspace, hello, prompt, stub } = await start(id, skip);
      expect(hello['protocolVersion']).toBe(1);
      expect(await prompt('[[say A short answer in several words.]]')).toMatchObject({ stopReason: 'end_turn' });
      expect(driver.text()).toContain('A short answer in several words.');
      expect(driver.updates.filter(isChunk).length).toBeGreaterThan(1);

      driver.answer('allow_once');
      expect(await prompt(`[[write ${join(workspace, 'hello.txt')} hi]]`)).toMatchObject({ stopReason: 'end_turn' });
      expect(readFileSync(join(workspace, 'hello.txt'), 'utf8').trimEnd()).toBe('hi');
      expect(driver.permissions).toHaveLength(1);

      expect(await prompt('[[shell echo made > made.txt]]')).toMatchObject({ stopReason: 'end_turn' });
      expect(readFileSync(join(workspace, 'made.txt'), 'utf8')).toBe('made\n');
      expect(driver.permissions).toHaveLength(2);
      expect(stub.seen.filter(({ asked }) => asked !== null).length).toBeGreaterThanOrEqual(5);
    },
  );

  test('writes nothing that is rejected, and its model is told', { timeout: 120_000 }, async ({ skip }) => {
    const { driver, workspace, prompt } = await start(id, skip);
    driver.answer('reject_once');
    expect(await prompt(`[[write ${join(workspace, 'no.txt')} hi]]`)).toMatchObject({ stopReason: 'end_turn' });
    expect(driver.permissions).toHaveLength(1);
    expect(existsSync(join(workspace, 'no.txt'))).toBe(false);
    expect(driver.text()).toContain('The tool said:');
  });

  test('stops streaming when it is cancelled, and takes the next prompt', { timeout: 120_000 }, async ({ skip }) => {
    const { driver, sessionId, prompt } = await start(id, skip);
    const slow = prompt('[[slow]]');
    await driver.seen(isChunk);
    driver.notify('session/cancel', { sessionId });
    expect(await slow).toMatchObject({ stopReason: 'cancelled' });
    expect(await prompt('[[say Back again.]]')).toMatchObject({ stopReason: 'end_turn' });
    expect(driver.text()).toContain('Back again.');
  });
});
