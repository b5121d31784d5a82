/** Verifiers that were not written here, as an auditor would use them: with trusted files of their own. */
import { spawnSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleFromJSON } from '@sigstore/bundle';
import { TrustedRoot } from '@sigstore/protobuf-specs';
import { toSignedEntity, toTrustMaterial, Verifier } from '@sigstore/verify';
import type { TestContext } from 'vitest';
import { checkpointNamespace } from '../../bridge/approvals/sshsig.ts';

const isHere = (program: string): boolean => spawnSync(program, ['-V'], { stdio: 'ignore' }).error === undefined;
const here = { openssl: isHere('openssl'), 'ssh-keygen': isHere('ssh-keygen') };
/** Skips the test, and says why, where the tool is absent. */
export const needs = (context: TestContext, program: keyof typeof here): void => {
  context.skip(!here[program], `skipped, because ${program} is not on this machine`);
};

/** `openssl pkeyutl -verify` of N.pae and N.sig in `folder`; `pem` is the path of a public key that is trusted. */
export const openssl = (folder: string, n: number, pem: string): boolean =>
  spawnSync(
    'openssl',
    [
      'pkeyutl',
      '-verify',
      '-pubin',
      '-inkey',
      pem,
      '-rawin',
      '-in',
      `${String(n)}.pae`,
      '-sigfile',
      `${String(n)}.sig`,
    ],
    { cwd: folder },
  ).status === 0;

/** Sigstore's own verifier over N.sigstore.json, offline; `trusted` holds the keys and the trusted root. */
export const sigstore = (folder: string, n: number, trusted: string): boolean => {
  const root = TrustedRoot.fromJSON(JSON.parse(readFileSync(join(trusted, 'trusted_root.json'), 'utf8')));
  const publicKey = createPublicKey(readFileSync(join(trusted, 'public.pem'), 'utf8'));
  const material = toTrustMaterial(root, () => ({ publicKey, validFor: () => true }));
  const verifier = new Verifier(material, { tlogThreshold: 1, ctlogThreshold: 0, timestampThreshold: 0 });
  try {
    const bundle = bundleFromJSON(JSON.parse(readFileSync(join(folder, `${String(n)}.sigstore.json`), 'utf8')));
    verifier.verify(toSignedEntity(bundle));
    return true;
  } catch {
    return false;
  }
};

/** `ssh-keygen -Y verify` of checkpoint.sshsig over checkpoint; `trusted` holds allowed_signers. */
export const sshKeygen = (folder: string, trusted: string, origin: string): boolean =>
  spawnSync(
    'ssh-keygen',
    [
      '-Y',
      'verify',
      '-f',
      join(trusted, 'allowed_signers'),
      '-I',
      origin,
      '-n',
      checkpointNamespace,
      '-s',
      'checkpoint.sshsig',
    ],
    { cwd: folder, input: readFileSync(join(folder, 'checkpoint')) },
  ).status === 0;
