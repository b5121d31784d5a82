import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import prettier from 'prettier';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openBundle } from '#protocol/bundle.ts';
import { leafBody, leafHash, verifyInclusion } from '#protocol/log.ts';
import { preAuthEncoding, payloadType } from '#protocol/receipts.ts';
import { inSync } from '#protocol/steps.ts';
import { nodePlatform } from '../../bridge/approvals/reader.ts';
import { installationKey, usual } from './history.ts';
import { temporary } from './parts.ts';
import { stage, type Stage } from './stage.ts';
import { needs } from './strangers.ts';
import { tamperTable } from './tamper.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const path = join(root, 'docs', 'RECEIPTS.md');
const text = readFileSync(path, 'utf8');

let directory: ReturnType<typeof temporary>;
let made: Stage;
beforeAll(async () => {
  directory = temporary();
  made = await stage(join(directory.path, 'example'), usual());
});
afterAll(() => directory.remove());
const file = (name: string): Buffer => readFileSync(join(made.folder, name));

/** Each block of the worked example, made from fixed keys and a fixed clock by the code that makes real ones. */
const example = (): Record<string, string> => {
  const { payload, signature, place } = openBundle(file('3.sigstore.json').toString())!;
  const body = leafBody(nodePlatform.sha256(payload), signature, installationKey.publicKeySpki);
  const leaf = inSync(leafHash(nodePlatform, nodePlatform.utf8(body)));
  expect(inSync(verifyInclusion(nodePlatform, place, leaf, place.root))).toBe(true);
  const head = Buffer.from(preAuthEncoding(payloadType, payload, nodePlatform.utf8))
    .toString()
    .slice(0, 80);
  const sums = readdirSync(made.folder)
    .sort()
    .map((name) => `${createHash('sha256').update(file(name)).digest('hex')}  ${name}`);
  return {
    'public.pem': file('public.pem').toString(),
    '3.action.json': file('3.action.json').toString(),
    statement: Buffer.from(payload).toString(),
    signature: `${head}…\n${Buffer.from(signature).toString('base64')}`,
    leaf: `${body}\n${Buffer.from(leaf).toString('hex')}`,
    '3.tlog-proof': file('3.tlog-proof').toString(),
    allowed_signers: file('allowed_signers').toString(),
    sums: sums.join('\n'),
  };
};
const marked = (name: string): RegExp =>
  new RegExp(`<!-- example ${name.replaceAll('.', '\\.')} -->\\n(?:\\n\`\`\`text\\n[^]*?\\n\`\`\`\\n)?`);

/** A command of the page by its name. */
const command = (name: string): string => {
  const found = new RegExp(`\`\`\`(?:sh|js) run=${name}\\n([^]*?)\`\`\``).exec(text)?.[1];
  if (found === undefined) throw new Error(`no command ${name} on the page`);
  return found;
};
const inFolder = (script: string) =>
  spawnSync('sh', ['-e', '-c', script], { cwd: made.folder, encoding: 'utf8', env: { PATH: process.env['PATH'] } });

describe('docs/RECEIPTS.md', () => {
  it('shows what the code makes of its example, and the table that is tested (vitest -u writes them)', async () => {
    const blocks = Object.entries(example());
    expect(blocks.filter(([name]) => !marked(name).test(text)).map(([name]) => name)).toEqual([]);
    const table = await prettier.format(tamperTable(), { parser: 'markdown', printWidth: 120 });
    const whole = blocks.reduce(
      (page, [name, block]) =>
        page.replace(marked(name), () => `<!-- example ${name} -->\n\n\`\`\`text\n${block.trimEnd()}\n\`\`\`\n`),
      text.replace(/<!-- tamper -->[^]*<!-- \/tamper -->/, () => `<!-- tamper -->\n\n${table}\n<!-- /tamper -->`),
    );
    await expect(whole).toMatchFileSnapshot(path);
  });

  it('prints the fingerprint that names the key in each receipt', (context) => {
    needs(context, 'openssl');
    const { stdout, status } = inFolder(command('fingerprint'));
    expect({ status, keyId: `SHA256:${stdout.trim()}` }).toEqual({ status: 0, keyId: installationKey.keyId });
  });

  it('checks signature and action with openssl alone', (context) => {
    needs(context, 'openssl');
    const { stdout, status } = inFolder(command('openssl'));
    expect(status).toBe(0);
    const [said, ...digests] = stdout.trim().split('\n');
    expect(said).toContain('Signature Verified Successfully');
    const found = digests.map((line) => /[0-9a-f]{64}/.exec(line)?.[0]);
    expect(found).toHaveLength(2);
    expect(found[0]).toBe(found[1]);
  });

  it("checks every bundle with Sigstore's verifier, and throws for a changed one", () => {
    const folder = join(directory.path, 'npm');
    mkdirSync(folder);
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'check.mjs'), command('sigstore'));
    const bundles = readdirSync(made.folder).filter((name) => name.endsWith('.sigstore.json'));
    const run = (names: readonly string[]) =>
      spawnSync(
        process.execPath,
        [
          join(folder, 'check.mjs'),
          join(made.folder, 'public.pem'),
          join(made.folder, 'trusted_root.json'),
          ...names.map((name) => join(made.folder, name)),
        ],
        { encoding: 'utf8' },
      );
    expect(run(bundles)).toMatchObject({ status: 0, stdout: `${String(bundles.length)} verified\n` });
    writeFileSync(
      join(made.folder, 'changed'),
      file('3.sigstore.json').toString().replace('"logIndex":"2"', '"logIndex":"1"'),
    );
    expect(run(['changed']).status).not.toBe(0);
  });

  it('checks the checkpoint with ssh-keygen', (context) => {
    needs(context, 'ssh-keygen');
    expect(inFolder(command('ssh'))).toMatchObject({ status: 0 });
  });
});
