import { linkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openRoot } from '../../bridge/files/root.ts';
import { isSecretPath } from '../../bridge/files/secrets.ts';
import { atEnd, codeOf, fill, makeFolder, makeRoot, textOf } from './parts.ts';

const secret = [
  '.env',
  '.env.local',
  '.ENV',
  '.git/config',
  '.GIT/config',
  'sub/.git/HEAD',
  '.g\u200cit/config',
  'server.pem',
  'SERVER.PEM',
  'a/id_rsa',
  'id_ed25519.pub',
  '.npmrc',
  '.netrc',
  '.pypirc',
  '.aws/config',
  '.ssh/known_hosts',
  '.codex/auth.json',
  '.gemini/oauth_creds.json',
  '.claude/.credentials.json',
  '.\uff45nv'.normalize('NFKC'),
  'ſerver.key',
];
const open = [
  'README.md',
  'src/env.ts',
  '.gitignore',
  '.github/workflows/ci.yml',
  'id_map.ts',
  'src/ids.ts',
  'environment.env.ts',
  'keys.ts',
  'package.json',
];

describe('F-04 secret policy', () => {
  test.each(secret)('%s is secret', (path) => {
    expect(isSecretPath(path.split('/'))).toBe(true);
  });
  test.each(open)('%s is not', (path) => {
    expect(isSecretPath(path.split('/'))).toBe(false);
  });

  test('is listed with a lock; its content is denied to reads, agent reads and writes', () => {
    const { root } = makeRoot({ '.env': 'TOKEN=1', '.git/config': 'url = https://user:pass@host', plain: 'x' });
    expect(root.list('').entries.map(({ name, secret: lock }) => [name, lock])).toEqual([
      ['.git', true],
      ['.env', true],
      ['plain', false],
    ]);
    for (const path of ['.env', '.git/config']) {
      expect(root.isSecret(path)).toBe(true);
      expect(root.stat(path).secret).toBe(true);
      expect(codeOf(() => root.read(path))).toBe('path_denied');
      expect(codeOf(() => root.readText(path, 100))).toBe('path_denied');
      expect(codeOf(() => root.readBytes(path, 100))).toBe('path_denied');
      expect(codeOf(() => root.write(path, Buffer.from('x'), null))).toBe('path_denied');
    }
    expect(codeOf(() => root.list('.git'))).toBe('path_denied');
    expect(codeOf(() => root.write('.git/hooks/pre-commit', Buffer.from('x'), null))).toBe('path_denied');
  });

  test('reveal shows a secret file and skips nothing else', () => {
    const { root, path } = makeRoot({ '.env': 'TOKEN=1' });
    symlinkSync('/etc/passwd', join(path, '.env.link'));
    expect(root.read('.env', { reveal: true }).content).toMatchObject({ kind: 'text', text: 'TOKEN=1' });
    expect(codeOf(() => root.read('.env.link', { reveal: true }))).toBe('symlink_refused');
    expect(codeOf(() => root.read('../.env', { reveal: true }))).toBe('invalid_path');
  });

  test('T59 twins by case both are secret, and é is one name however it is written', () => {
    const { root } = makeRoot({ '.ENV': 'a', '.env': 'b', '.env.é': 'c', '.env.e\u0301': 'd' });
    for (const { path } of root.list('').entries) expect(codeOf(() => root.read(path ?? ''))).toBe('path_denied');
  });

  test('T60 a hard link to a secret file is that file: in the workspace, in .git, at home', () => {
    const { root, path } = makeRoot({ 'deep/er/.env': 'TOKEN=1', '.git/config': 'c', plain: 'p' });
    fill(join(path, '..'), { 'home/.ssh/id_rsa': 'k', 'home/.netrc': 'n' });
    const links = {
      'notes.txt': 'deep/er/.env',
      'c.txt': '.git/config',
      'k.txt': '../home/.ssh/id_rsa',
      'n.txt': '../home/.netrc',
    };
    for (const [name, target] of Object.entries(links)) linkSync(join(path, target), join(path, name));
    linkSync(join(path, 'plain'), join(path, 'plain.copy'));
    for (const name of Object.keys(links)) {
      expect(codeOf(() => root.read(name))).toBe('path_denied');
      expect(codeOf(() => root.readText(name, 100))).toBe('path_denied');
      expect(codeOf(() => root.write(name, Buffer.from('x'), root.stat(name).revision))).toBe('path_denied');
    }
    expect(textOf(root, 'plain.copy')).toBe('p');
  });

  test('T60 the bridge’s private directory is closed wherever it is, also to reveal', () => {
    const path = makeFolder();
    fill(path, { 'state/private/key.txt': 'key', 'state/private/keys/receipt.txt': 'key', 'state/practice/f': 'f' });
    const root = openRoot({ workspaceId: 'w', path, privateDirectories: [join(path, 'state/private')] });
    atEnd(() => root.close());
    linkSync(join(path, 'state/private/key.txt'), join(path, 'linked.txt'));
    linkSync(join(path, 'state/private/keys/receipt.txt'), join(path, 'deep.txt'));
    expect(root.list('state').entries.map(({ name, secret: lock }) => [name, lock])).toEqual([
      ['practice', false],
      ['private', true],
    ]);
    for (const reveal of [false, true])
      expect(codeOf(() => root.read('state/private/key.txt', { reveal }))).toBe('path_denied');
    expect(codeOf(() => root.list('state/private'))).toBe('path_denied');
    expect(codeOf(() => root.stat('state/private/key.txt'))).toBe('path_denied');
    expect(codeOf(() => root.write('state/private/new', Buffer.from('x'), null))).toBe('path_denied');
    expect(root.isSecret('state/private/key.txt')).toBe(true);
    for (const name of ['linked.txt', 'deep.txt']) expect(codeOf(() => root.read(name))).toBe('path_denied');
    expect(textOf(root, 'state/practice/f')).toBe('f');
  });
});
