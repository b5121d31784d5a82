/**
 * The secret policy (F-04): which files are listed with a lock and whose content is never given out. Pure; names are
 * compared as case-folded NFC, because a case-insensitive disk opens `.ENV` as `.env`.
 * The rule not to break: a name is enough to refuse, and a harmless name is not enough to allow: `read.ts` also asks
 * whether the opened object is a secret one under another name.
 */
import type { Segments } from './beneath.ts';

/** NFC, folded to one case, without the characters some disks ignore (`.g\u200cit` opens `.git` on HFS+). */
export const fold = (name: string): string =>
  // Nearly every name: listing 20,000 of them is felt.
  /^[\x20-\x7e]*$/.test(name)
    ? name.toLowerCase()
    : // Upper first: it joins pairs that lower case alone keeps apart (ſ and s, K and k).
      name
        .normalize('NFC')
        .toUpperCase()
        .toLowerCase()
        .normalize('NFC')
        .replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, '');

/** Components whose whole content is secret. `.git` holds remotes with passwords and hooks that run; `git~1` is its 8.3 name. */
const anywhere = /^(\.git|git~1|\.ssh|\.aws|\.gnupg|\.azure|\.kube|\.docker|\.env.*)$/;

/** Last components: keys, and the credentials of package managers, tools and agents. */
const names = new Set([
  ...['.npmrc', '.yarnrc.yml', '.netrc', '_netrc', '.pypirc', '.pgpass', '.my.cnf', '.htpasswd', '.git-credentials'],
  ...['credentials.json', '.credentials.json', 'auth.json', 'oauth_creds.json', '.claude.json', 'secring.gpg'],
]);
const endings = /\.(pem|key|p12|pfx|jks|keystore|ppk|kdbx)$/;
/** `id_*` without an ending is a key by ssh's naming; `id_map.ts` is source. */
const keys = /^id_[^.]+(\.pub)?$/;

/** True when the content at this path is kept from the app and from agents. */
export const isSecretPath = (segments: Segments): boolean => {
  const folded = segments.map(fold);
  const last = folded.at(-1) ?? '';
  return folded.some((name) => anywhere.test(name)) || names.has(last) || endings.test(last) || keys.test(last);
};

/** Outside of any workspace, below the home directory: what a hard link could bring in. Directories are one level. */
export const homeSecrets = {
  files: [
    '.netrc',
    '.npmrc',
    '.pypirc',
    '.pgpass',
    '.git-credentials',
    '.claude.json',
    '.claude/.credentials.json',
    '.codex/auth.json',
    '.gemini/oauth_creds.json',
  ],
  directories: ['.ssh', '.aws', '.gnupg', '.kube', '.docker', '.azure'],
} as const;
