import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { verifyFile, verifyFolder, type VerifyReport } from '../../bridge/approvals/folder.ts';
import { verifyAll } from '../../bridge/approvals/reader.ts';
import { openLedgerReadOnly } from '../../bridge/ledger/ledger.ts';
import { bridgeId, installationKey, usual } from './history.ts';
import { temporary } from './parts.ts';
import { stage, type Stage } from './stage.ts';
import { needs, openssl, sigstore, sshKeygen } from './strangers.ts';
import { changedDatabase, forgeries, inCopy, verifiers, type Forgery, type VerifierName } from './tamper.ts';

let directory: ReturnType<typeof temporary>;
/** The honest record; what strangers trust was taken from it while it was honest, and its checkpoint was kept. */
let honest: Stage;
let count = 0;
const fresh = (): string => {
  const path = join(directory.path, `copy-${String((count += 1))}`);
  mkdirSync(path);
  return path;
};
beforeAll(async () => {
  directory = temporary();
  honest = await stage(join(directory.path, 'honest'), usual());
});
afterAll(() => directory.remove());

const key = installationKey.publicKeySpki;
const kept = () => [{ note: honest.checkpoint.note, place: 'kept elsewhere' }];

interface Forged {
  readonly folder: string;
  readonly ledger: string;
  readonly known: ReturnType<typeof kept>;
}
const forge = async ({ history, files, database, ...forgery }: Forgery): Promise<Forged> => {
  const { drafts, ...signing } = history ?? {};
  const made = drafts === undefined ? honest : await stage(fresh(), drafts(), signing);
  const folder = inCopy(made, fresh());
  files?.(folder);
  const ledger = changedDatabase(made, fresh(), database ?? (() => undefined));
  return { folder, ledger, known: forgery.kept === true ? kept() : [] };
};

const wholeOf = async ({ ledger: path, known }: Forged): Promise<Pick<VerifyReport, 'ok' | 'problems'>> => {
  const ledger = openLedgerReadOnly(path);
  try {
    return verifyAll(ledger.read, key, bridgeId, [...ledger.read.checkpoints(), ...known]);
  } finally {
    await ledger.close();
  }
};
const verdict = ({ ok, problems }: Pick<VerifyReport, 'ok' | 'problems'>) => ({
  accepts: ok,
  names: problems.map(({ seq }) => seq),
});

/** A program that would be given the very bytes it accepted before need not be run again. */
const isUntouched = (folder: string, names: readonly string[]): boolean =>
  folder !== honest.folder &&
  names.every((name) => readFileSync(join(folder, name)).equals(readFileSync(join(honest.folder, name))));

const run = async (context: TestContext, name: VerifierName, at: number, forged: Forged) => {
  const { folder, known } = forged;
  const stranger = (accepts: boolean) => ({ accepts, names: [] as (number | null)[] });
  switch (name) {
    case '--all':
      return verdict(await wholeOf(forged));
    case 'folder':
      return verdict(verifyFolder(folder, key, { checkpoints: known }));
    case 'file':
      return verdict(verifyFile(join(folder, `${String(at)}.dsse.json`), key, { checkpoints: known }));
    case 'sigstore':
      return stranger(sigstore(folder, at, honest.folder));
    case 'openssl':
      needs(context, 'openssl');
      return stranger(
        (at < 8 && isUntouched(folder, [`${String(at)}.pae`, `${String(at)}.sig`])) ||
          openssl(folder, at, join(honest.folder, 'public.pem')),
      );
    case 'ssh-keygen':
      needs(context, 'ssh-keygen');
      return stranger(
        isUntouched(folder, ['checkpoint', 'checkpoint.sshsig']) || sshKeygen(folder, honest.folder, honest.origin),
      );
  }
};

describe('what nobody touched (R-25)', () => {
  it.for(verifiers)('is accepted: %s', async (name, context) => {
    const ledger = changedDatabase(honest, fresh(), () => undefined);
    const made = { folder: honest.folder, ledger, known: kept() };
    for (const n of [2, 3, 4, 5, 6, 7])
      expect(await run(context, name, n, made)).toMatchObject({ accepts: true, names: [] });
  });
});

describe.each(forgeries)('changed: $what (T46, R-25)', (forgery) => {
  let forged: Forged;
  beforeAll(async () => {
    forged = await forge(forgery);
  });

  it.for(verifiers)('%s', async (name, context) => {
    const expected = forgery.seen[name];
    const { accepts, names } = await run(context, name, forgery.at, forged);
    expect(accepts).toBe(typeof expected === 'string');
    if (typeof expected === 'number') expect(names).toContain(expected);
  });
});
