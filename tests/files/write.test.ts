import { createHash } from 'node:crypto';
import {
  chmodSync,
  linkSync,
  lstatSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { codeOf, fill, makeRoot } from './parts.ts';

describe('F-05 writing', () => {
  test('case 49 writes exactly the bytes it was given: mark, CRLF, no last break, invalid UTF-8', () => {
    const { root, path } = makeRoot({ f: 'old' });
    const bytes = Buffer.concat([Buffer.from('\ufeffárvíztűrő\r\nend'), Buffer.from([0xff, 0x00])]);
    const { revision, sha256 } = root.write('f', bytes, root.stat('f').revision);
    expect(readFileSync(join(path, 'f')).equals(bytes)).toBe(true);
    expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect(revision).toBe(root.stat('f').revision);
  });

  test('case 49 a read and a write back lose no mark', () => {
    const original = '\ufeffárvíztűrő\r\n';
    const { root, path } = makeRoot({ f: original });
    const { text, revision, bom } = root.readText('f', 100) ?? { text: '', revision: '', bom: false };
    expect(bom).toBe(true);
    root.write('f', Buffer.from(text.replace('\r\n', '!\r\n')), revision);
    expect(readFileSync(join(path, 'f'), 'utf8')).toBe('\ufeffárvíztűrő!\r\n');
  });

  test('refuses when the file is not as it was shown', () => {
    const { root, path } = makeRoot({ f: 'one' });
    const seen = root.stat('f').revision;
    writeFileSync(join(path, 'f'), 'two');
    expect(codeOf(() => root.write('f', Buffer.from('mine'), seen))).toBe('file_changed');
    expect(codeOf(() => root.write('f', Buffer.from('mine'), null))).toBe('file_changed');
    expect(codeOf(() => root.write('gone', Buffer.from('mine'), seen))).toBe('file_changed');
    expect(readFileSync(join(path, 'f'), 'utf8')).toBe('two');
    expect(readdirSync(path)).toEqual(['f']);
  });

  test('makes missing folders for a new file, and none for one that should exist', () => {
    const { root, path } = makeRoot();
    expect(codeOf(() => root.write('x/y/f', Buffer.from('a'), 'seen'))).toBe('not_found');
    expect(readdirSync(path)).toEqual([]);
    root.write('x/y/f', Buffer.from('a'), null);
    expect(readFileSync(join(path, 'x/y/f'), 'utf8')).toBe('a');
  });

  test('keeps mode bits of what it replaces, without set-id, and gives a new file the usual ones', () => {
    const { root, path } = makeRoot({ 'run.sh': '#!/bin/sh\n', private: 'x' });
    chmodSync(join(path, 'run.sh'), 0o4755);
    chmodSync(join(path, 'private'), 0o600);
    for (const name of ['run.sh', 'private']) root.write(name, Buffer.from('y'), root.stat(name).revision);
    root.write('new', Buffer.from('y'), null);
    const modes = ['run.sh', 'private', 'new'].map((name) => (statSync(join(path, name)).mode & 0o7777).toString(8));
    expect(modes).toEqual(['755', '600', (0o666 & ~process.umask()).toString(8)]);
  });

  test('a link is refused as the last component, a dangling one too, and nothing is made behind it', () => {
    const { root, path, outside } = makeRoot();
    fill(outside, { f: 'outside' });
    symlinkSync(join(outside, 'f'), join(path, 'link'));
    symlinkSync(join(outside, 'new'), join(path, 'dangling'));
    for (const name of ['link', 'dangling'])
      expect(codeOf(() => root.write(name, Buffer.from('x'), null))).toBe('symlink_refused');
    expect(readdirSync(outside)).toEqual(['f']);
    expect(readFileSync(join(outside, 'f'), 'utf8')).toBe('outside');
  });

  test('T58 writing to a hard link replaces this name only', () => {
    const { root, path, outside } = makeRoot();
    fill(outside, { f: 'outside' });
    linkSync(join(outside, 'f'), join(path, 'f'));
    root.write('f', Buffer.from('mine'), root.stat('f').revision);
    expect(readFileSync(join(outside, 'f'), 'utf8')).toBe('outside');
    expect(readFileSync(join(path, 'f'), 'utf8')).toBe('mine');
    expect(lstatSync(join(path, 'f')).nlink).toBe(1);
  });

  test('T61 leaves no temporary file, in the folder or the system’s, granted or refused', () => {
    const { root, path } = makeRoot({ 'd/f': 'x' });
    const before = readdirSync(tmpdir()).filter((name) => name.endsWith('.tmp'));
    root.write('d/f', Buffer.from('y'), root.stat('d/f').revision);
    root.write('d/g', Buffer.from('y'), null);
    codeOf(() => root.write('d/f', Buffer.from('z'), 'old'));
    codeOf(() => root.write('d', Buffer.from('z'), null));
    expect(readdirSync(join(path, 'd')).sort()).toEqual(['f', 'g']);
    expect(readdirSync(tmpdir()).filter((name) => name.endsWith('.tmp'))).toEqual(before);
  });

  test('more than the bound is refused', () => {
    const { root } = makeRoot();
    expect(codeOf(() => root.write('f', new Uint8Array(limits.writeBytes + 1), null))).toBe('content_too_large');
  });
});
