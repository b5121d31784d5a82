/** Row 19 in the app: ten thousand receipts fetched, verified in the page's worker, and said so. */
import { Bridge } from '../bridge/process.ts';
import { launchAt, type Ground } from './ground.ts';
import { atMost, figure, repeat, type Row } from './measure.ts';
import { sealReceipts } from './sign.ts';

const receipts = 10_000;

/** As many bare signature checks in a worker-free page, as many under way at once as the verifier has. */
const bareVerify = async (count: number): Promise<number> => {
  const keys = (await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify'])) as CryptoKeyPair;
  const bytes = crypto.getRandomValues(new Uint8Array(1900));
  const signature = await crypto.subtle.sign('Ed25519', keys.privateKey, bytes);
  const began = performance.now();
  for (let done = 0; done < count; done += 125)
    await Promise.all(
      Array.from({ length: 125 }, () => crypto.subtle.verify('Ed25519', keys.publicKey, signature, bytes)),
    );
  return performance.now() - began;
};

export const verifyPageRows = async (ground: Ground): Promise<Row[]> => {
  const state = ground.path('verify-page-state');
  await sealReceipts(state);
  const bridge = await new Bridge(state, [], { COUNTERSIGN_LOG: '0' }).start();
  const context = await (await ground.browser()).newContext({ viewport: { width: 1440, height: 900 } });
  try {
    const page = await context.newPage();
    await page.goto(await launchAt(bridge, '/receipts'));
    const button = page.getByRole('button', { name: 'Verify all' });
    const said = page.getByText(/receipts verified in/);
    await button.waitFor();
    const floors: number[] = [];
    const notes: string[] = [];
    const times = await repeat(3, async () => {
      floors.push(await page.evaluate(bareVerify, receipts));
      const began = await page.evaluate(() => performance.now());
      await button.click();
      await page.getByRole('progressbar').waitFor();
      await said.waitFor({ timeout: 120_000 });
      const ms = (await page.evaluate(() => performance.now())) - began;
      notes.push((await said.textContent()) ?? '');
      return ms;
    });
    return [
      atMost(
        {
          row: '19',
          name: 'verify-page',
          what: '10,000 receipts verified in the app, click to answer',
          unit: 'ms',
          floor: figure(floors),
          ours: figure(times),
          note: `fetched from the bridge on the way; floor: 10,000 bare WebCrypto checks; last: ${notes.at(-1) ?? ''}`,
        },
        6000,
      ),
    ];
  } finally {
    await context.close();
    await bridge.stop();
  }
};
