import { execFileSync, spawnSync } from 'node:child_process';
import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { openRoot } from '../../bridge/files/root.ts';
import { atEnd, codeOf, fill, makeRoot, openDescriptors, textOf } from './parts.ts';

describe('T54 grammar', () => {
  const bad = {
    'a parent segment': '../x',
    'a parent segment inside': 'a/../b',
    'a dot segment': './a',
    'an empty segment': 'a//b',
    'an absolute path': '/etc/passwd',
    'a trailing slash': 'a/',
    'a NUL': 'a\0b',
    'a backslash': '..\\x',
    'a name over 255 bytes': 'é'.repeat(128),
    'a depth over 64': Array(limits.pathDepth + 1)
      .fill('a')
      .join('/'),
    'a path over 4096 bytes': Array(20).fill('a'.repeat(250)).join('/'),
    'a lone surrogate': 'a\ud800',
  };
  test.each(Object.entries(bad))('refuses %s in every verb', (_, path) => {
    const { root } = makeRoot({ 'a/b': '' });
    expect(codeOf(() => root.read(path))).toBe('invalid_path');
    expect(codeOf(() => root.list(path))).toBe('invalid_path');
    expect(codeOf(() => root.stat(path))).toBe('invalid_path');
    expect(codeOf(() => root.readText(path, 1))).toBe('invalid_path');
    expect(codeOf(() => root.write(path, Buffer.from('x'), null))).toBe('invalid_path');
  });

  test('takes any other name, as deep and as long as is allowed', () => {
    const { root } = makeRoot({ '.../ a$b/é\n': 'odd' });
    expect(textOf(root, '.../ a$b/é\n')).toBe('odd');
    const long = 'n'.repeat(255);
    root.write(long, Buffer.from('x'), null);
    expect(textOf(root, long)).toBe('x');
  });
});

describe('case 43 links', () => {
  test('a link to a file is refused at its name, inside and outside', () => {
    const { root, path } = makeRoot({ 'real.txt': 'real' });
    symlinkSync('/etc/passwd', join(path, 'a'));
    symlinkSync('real.txt', join(path, 'b'));
    for (const name of ['a', 'b']) {
      expect(codeOf(() => root.read(name))).toBe('symlink_refused');
      expect(codeOf(() => root.readText(name, 100))).toBe('symlink_refused');
      expect(root.stat(name).type).toBe('symlink');
    }
  });

  test('a linked folder is refused on the way, at any depth', () => {
    const { root, path, outside } = makeRoot({ 'x/y/': '' });
    fill(outside, { f: 'outside' });
    symlinkSync('/', join(path, 'd'));
    symlinkSync(outside, join(path, 'x/y/z'));
    expect(codeOf(() => root.read('d/etc/passwd'))).toBe('symlink_refused');
    expect(codeOf(() => root.read('x/y/z/f'))).toBe('symlink_refused');
    expect(codeOf(() => root.list('d'))).toBe('symlink_refused');
    expect(codeOf(() => root.list('x/y/z'))).toBe('symlink_refused');
    expect(codeOf(() => root.stat('d/etc'))).toBe('symlink_refused');
    expect(codeOf(() => root.write('x/y/z/new', Buffer.from('x'), null))).toBe('symlink_refused');
  });

  test('says what else is in the way', () => {
    const { root } = makeRoot({ file: 'x', 'folder/': '' });
    expect(codeOf(() => root.read('file/below'))).toBe('not_a_directory');
    expect(codeOf(() => root.list('file'))).toBe('not_a_directory');
    expect(codeOf(() => root.read('folder'))).toBe('not_a_file');
    expect(codeOf(() => root.read(''))).toBe('not_a_file');
    expect(codeOf(() => root.read('nothing'))).toBe('not_found');
    expect(root.readText('nothing/at/all', 10)).toBeNull();
  });
});

describe('T55 special files', () => {
  test('a FIFO, a socket and a device are described and never opened', async () => {
    const { root, path } = makeRoot();
    execFileSync('mkfifo', [join(path, 'fifo')]);
    const server = createServer().listen(join(path, 'socket'));
    atEnd(() => server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const names = ['fifo', 'socket'];
    // Making a device needs privilege; where it is there, the device is tried too.
    if (spawnSync('mknod', [join(path, 'zero'), 'c', '1', '5']).status === 0) names.push('zero');
    for (const name of names) {
      // Would hang for ever on the FIFO if it were opened without O_NONBLOCK, and read without end on the device.
      expect(codeOf(() => root.read(name))).toBe('unsupported_file_type');
      expect(codeOf(() => root.readText(name, 100))).toBe('unsupported_file_type');
      expect(codeOf(() => root.write(name, Buffer.from('x'), null))).toBe('unsupported_file_type');
      expect(root.stat(name).type).toBe('other');
    }
    expect(root.list('').entries.map(({ type }) => type)).toEqual(names.map(() => 'other'));
  });
});

describe('T57 mounts', () => {
  const kinds = { 'a bind mount, which has the device of its source,': 'bind', 'a file system of its own': 'tmpfs' };
  test.for(Object.entries(kinds))('%s is refused', ([, kind], { skip }) => {
    const { path, outside } = makeRoot({ 'mount/': '', 'plain/f': 'plain' });
    fill(outside, { f: 'outside' });
    const script = `
      import { openRoot } from ${JSON.stringify(join(import.meta.dirname, '../../bridge/files/root.ts'))};
      const root = openRoot({ workspaceId: 'w', path: ${JSON.stringify(path)}, privateDirectories: [] });
      const code = (act) => { try { act(); return 'done'; } catch (error) { return error.code; } };
      console.log([code(() => root.read('plain/f')), code(() => root.read('mount/f')), code(() => root.list('mount')), code(() => root.write('mount/g', Buffer.from('x'), null))].join());`;
    const file = join(path, 'probe.ts');
    writeFileSync(file, script);
    const how = kind === 'bind' ? `--bind '${outside}'` : '-t tmpfs none';
    const mount = `mount ${how} '${path}/mount' && echo outside > '${path}/mount/f'`;
    const inside = spawnSync('unshare', ['-Urm', 'sh', '-c', `${mount} && exec '${process.execPath}' '${file}'`], {
      encoding: 'utf8',
    });
    if (inside.error !== undefined || /unshare|mount:/.test(inside.stderr))
      skip('skipped, because this machine lets no test make a mount');
    expect(inside.stdout.trim()).toBe('done,symlink_refused,symlink_refused,symlink_refused');
  });
});

describe('W-01 the root', () => {
  test('replaced by another directory it is changed, in every verb', () => {
    const { root, path, outside } = makeRoot({ f: 'mine' });
    renameSync(path, `${path}.old`);
    mkdirSync(path);
    for (const act of [
      () => root.check(),
      () => root.read('f'),
      () => root.list(''),
      () => root.stat('f'),
      () => root.gitHead(),
      () => root.write('f', Buffer.from('x'), null),
    ]) {
      expect(codeOf(act)).toBe('workspace_changed');
    }
    rmSync(path, { recursive: true });
    symlinkSync(outside, path);
    expect(codeOf(() => root.check())).toBe('workspace_changed');
    symlinkBack(path);
    expect(codeOf(() => root.check())).toBe('workspace_changed'); // a link to the very directory is not it either
  });

  const symlinkBack = (path: string): void => {
    rmSync(path);
    symlinkSync(`${path}.old`, path);
  };

  test('deleted it is changed', () => {
    const { root, path } = makeRoot();
    rmSync(path, { recursive: true });
    expect(codeOf(() => root.check())).toBe('workspace_changed');
  });

  test('is not opened through a link', () => {
    const { path } = makeRoot();
    symlinkSync(path, `${path}.link`);
    expect(codeOf(() => openRoot({ workspaceId: 'w', path: `${path}.link`, privateDirectories: [] }))).toBe(
      'not_a_directory',
    );
  });
});

describe('T62 descriptors', () => {
  test('10,000 opens, refused and granted, leave none behind', () => {
    const { root, path } = makeRoot({ 'a/b/c.txt': 'x', '.env': 'S', file: 'x' });
    symlinkSync('/etc', join(path, 'link'));
    linkSync(join(path, 'file'), join(path, 'file2'));
    const acts = ['a/b/c.txt', 'a/b/none', 'link/passwd', '.env', 'a', 'file/x', 'link', 'file', '../x'].map(
      (name) => () => codeOf(() => root.read(name)),
    );
    const rest = [
      () => root.list('a/b'),
      () => codeOf(() => root.list('link')),
      () => root.stat('a/b'),
      () => codeOf(() => root.write('link/x', Buffer.from('x'), null)),
    ];
    const all = [...acts, ...rest];
    all.forEach((act) => act());
    const before = openDescriptors();
    for (let done = 0; done < 10_000; done += all.length) all.forEach((act) => act());
    expect(openDescriptors()).toBe(before);
  });

  test('a failed write leaves none behind, and no temporary file', () => {
    const { root } = makeRoot({ 'a/f': 'x', 'a/folder/': '' });
    const before = openDescriptors();
    for (let done = 0; done < 50; done += 1) {
      codeOf(() => root.write('a/f', Buffer.from('y'), 'of another time'));
      codeOf(() => root.write('a/folder', Buffer.from('y'), null));
    }
    expect(openDescriptors()).toBe(before);
    expect(root.list('a').entries.map(({ name }) => name)).toEqual(['folder', 'f']);
  });
});

describe('agent paths', () => {
  test('become relative by grammar alone, or are outside', () => {
    const { root, path } = makeRoot();
    expect(root.relative(`${path}/src/a.ts`)).toBe('src/a.ts');
    expect(root.relative('./src//a.ts')).toBe('src/a.ts');
    expect(root.relative(path)).toBe('');
    for (const outside of ['/etc/passwd', `${path}x/a`, '../a', `${path}/../a`, 'a\\b', 'a\0'])
      expect(root.relative(outside)).toBeNull();
  });
});

test('a root that was closed opens nothing, whatever its descriptor is now', () => {
  const { root } = makeRoot({ a: 'mine' });
  const other = makeRoot({ a: 'theirs' });
  root.close();
  const again = openRoot({ workspaceId: other.root.workspaceId, path: other.path, privateDirectories: [] });
  atEnd(() => {
    again.close();
  });
  expect(codeOf(() => root.read('a'))).toBe('workspace_unavailable');
});
