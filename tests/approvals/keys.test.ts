import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keyIdOf, openReceiptKey, readPublicKey } from '../../bridge/approvals/keys.ts';
import { verifyEd25519 } from '../../bridge/approvals/signature.ts';
import { temporary } from './parts.ts';

let directory: ReturnType<typeof temporary>;
let keys: string;
let file: string;
beforeEach(() => {
  directory = temporary();
  keys = join(directory.path, 'keys');
  file = join(keys, 'receipt.pem');
});
afterEach(() => directory.remove());

const refusal = (): { code?: string; message?: string; cause?: unknown } => {
  try {
    openReceiptKey(keys);
  } catch (error) {
    return error as { code: string; message: string };
  }
  return {};
};

describe('the receipt key (T51)', () => {
  it('is made once, 0600 in 0700, and is the same at the next start', () => {
    const made = openReceiptKey(keys);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(keys).mode & 0o777).toBe(0o700);
    expect(openReceiptKey(keys).keyId).toBe(made.keyId);
    expect(made.keyId).toBe(keyIdOf(made.publicKeySpki));
    expect(readFileSync(file, 'utf8')).toContain('BEGIN PRIVATE KEY');
    expect(readPublicKey(keys)).toEqual({
      keyId: made.keyId,
      publicKeySpki: made.publicKeySpki,
      publicKeyPem: made.publicKeyPem,
    });
    expect(readPublicKey(join(directory.path, 'nowhere'))).toBeNull();
  });

  it.each([
    ['a mode others can read', () => chmodSync(file, 0o644), 'chmod 600'],
    ['a directory others can enter', () => chmodSync(keys, 0o755), 'chmod 700'],
    [
      'a symbolic link',
      () => (renameSync(file, join(directory.path, 'real.pem')), symlinkSync(join(directory.path, 'real.pem'), file)),
      'must not be a link',
    ],
    ['a second name', () => linkSync(file, join(directory.path, 'twin.pem')), 'one name'],
    ['something else than a key', () => writeFileSync(file, 'canary-secret'), 'backup'],
    [
      'an RSA key',
      () =>
        writeFileSync(
          file,
          generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
        ),
      'not an Ed25519 key',
    ],
    ['a file of megabytes', () => writeFileSync(file, 'x'.repeat(1_000_000)), 'too large'],
  ])('refuses %s, and says what mends it', (_what, change, mend) => {
    openReceiptKey(keys);
    change();
    const { code, message, cause } = refusal();
    expect(code).toBe('unsafe_key');
    expect(message).toContain(mend);
    expect(`${String(message)} ${String(cause)}`).not.toMatch(/canary|PRIVATE/);
  });

  it('refuses a directory that is a link, and one of another user', () => {
    mkdirSync(join(directory.path, 'elsewhere'), { mode: 0o700 });
    symlinkSync(join(directory.path, 'elsewhere'), keys);
    expect(refusal().code).toBe('unsafe_key');
  });

  it.runIf(process.getuid?.() === 0)('refuses a key of another owner', async () => {
    openReceiptKey(keys);
    const { chownSync } = await import('node:fs');
    chownSync(file, 65_534, 65_534);
    expect(refusal().message).toContain('another user');
  });

  it('verifies nothing with a key or a signature that is not one', () => {
    const { publicKeySpki } = openReceiptKey(keys);
    expect(verifyEd25519(publicKeySpki, new Uint8Array(3), new Uint8Array(5))).toBe(false);
    expect(verifyEd25519(new Uint8Array(9), new Uint8Array(3), new Uint8Array(64))).toBe(false);
  });
});
