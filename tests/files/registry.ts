/** A registry on a real ledger, below one folder: state, template, leases. */
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openLedger } from '../../bridge/ledger/ledger.ts';
import { createWorkspaces } from '../../bridge/files/workspaces.ts';
import { makeLock } from './lock.ts';

/** `state` names the state directory below `base`; leases are shared by all states of a user. */
export const openRegistry = (base: string, state = 'state') => {
  const directory = join(base, state, 'private');
  for (const folder of [directory, join(directory, 'blobs'), join(base, 'leases')])
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  const ledger = openLedger({ directory, blobs: join(directory, 'blobs') });
  const seen = { invalidated: 0 };
  const workspaces = createWorkspaces({
    ledger,
    practiceTemplate: join(base, 'template'),
    practiceDirectory: join(base, state, 'practice'),
    lock: makeLock(join(base, 'leases')),
    privateDirectories: [directory, join(base, 'leases')],
    now: Date.now,
    random: randomBytes,
    invalidate: () => {
      seen.invalidated += 1;
    },
  });
  return { workspaces, ledger, seen };
};
