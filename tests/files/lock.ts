/** The lease of W-02 as the bridge takes it: an open exclusive transaction on a small SQLite file, freed by kill -9. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Lock } from '../../bridge/files/workspaces.ts';

export const makeLock =
  (directory: string): Lock =>
  (dev, ino) => {
    const file = join(directory, `${dev}-${ino}`);
    const db = new DatabaseSync(file);
    try {
      db.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE');
    } catch {
      db.close();
      return { holder: { pid: Number(readFileSync(`${file}.pid`, 'utf8')) } };
    }
    writeFileSync(`${file}.pid`, String(process.pid));
    return { release: () => db.close() };
  };
