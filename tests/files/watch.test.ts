import {
  watch as systemWatch,
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { createLooks } from '../../bridge/files/looks.ts';
import { Beneath } from '../../bridge/files/beneath.ts';
import { openRoot } from '../../bridge/files/root.ts';
import { startWatch } from '../../bridge/files/watch.ts';
import { atEnd, codeOf, fill, makeRoot, openDescriptors } from './parts.ts';

/** Waits until what was done is told, then forgets it. */
const told = async (changed: ReturnType<typeof vi.fn>): Promise<void> => {
  await vi.waitFor(() => expect(changed).toHaveBeenCalled(), { timeout: 10_000, interval: 20 });
  await wait(400); // the rest of the same burst
  changed.mockClear();
};

describe('F-07 watching', () => {
  test('tells of what is made, changed, renamed and removed in what is watched, once for a burst', async () => {
    const { root, path } = makeRoot({ 'a/f': '', 'b/c/f': '', 'b/other': '' });
    const changed = vi.fn();
    const watch = root.watch(['', 'a'], 'b/c/f', changed);
    atEnd(() => watch.close());
    expect([watch.watched, watch.polled]).toEqual([3, 0]);
    for (let file = 0; file < 100; file += 1) writeFileSync(join(path, `a/n${file}`), '');
    await vi.waitFor(() => expect(changed).toHaveBeenCalled(), { timeout: 10_000 });
    await wait(400);
    expect(changed.mock.calls.length).toBeLessThan(5);
    changed.mockClear();
    appendFileSync(join(path, 'a/f'), 'x');
    await told(changed);
    renameSync(join(path, 'a/f'), join(path, 'a/g'));
    await told(changed);
    appendFileSync(join(path, 'b/c/f'), 'x');
    await told(changed);
    rmSync(join(path, 'a'), { recursive: true });
    await told(changed);
    appendFileSync(join(path, 'b/other'), 'x');
    await wait(500);
    expect(changed).not.toHaveBeenCalled();
  });

  test('follows the directory that was opened, and no link', async () => {
    const { root, path, outside } = makeRoot({ 'a/f': '' });
    fill(outside, { f: '' });
    symlinkSync(outside, join(path, 'link'));
    const changed = vi.fn();
    const watch = root.watch(['link', 'gone', 'a'], undefined, changed);
    atEnd(() => watch.close());
    expect(watch.watched).toBe(1);
    appendFileSync(join(outside, 'f'), 'x');
    await wait(500);
    expect(changed).not.toHaveBeenCalled();
    expect(codeOf(() => root.watch(['../x'], undefined, changed))).toBe('invalid_path');
  });

  test('where the system takes no more watches the folders are looked at from time to time', async () => {
    const { path } = makeRoot({ 'a/f': '', 'b/f': '' });
    const beneath = new Beneath(path, () => new Set());
    atEnd(() => beneath.close());
    const changed = vi.fn();
    let taken = 0;
    const take = ((...args: Parameters<typeof systemWatch>) => {
      taken += 1;
      if (taken > 1) throw Object.assign(new Error('no space left for watches'), { code: 'ENOSPC' });
      return systemWatch(...args);
    }) as typeof systemWatch;
    const watch = startWatch(beneath, [['a'], ['b']], changed, take);
    atEnd(() => watch.close());
    expect([watch.watched, watch.polled]).toEqual([1, 1]);
    mkdirSync(join(path, 'b/new'));
    await told(changed);
  });

  test('ends with the attachment, with the next of it, and with the root; nothing stays open', async () => {
    const { path } = makeRoot({ 'a/f': '', 'b/f': '' });
    const before = openDescriptors();
    const root = openRoot({ workspaceId: '0198b6d0-0000-7000-8000-000000000001', path, privateDirectories: [] });
    const ends = new Map<string, () => void>();
    const changed = vi.fn();
    const looks = createLooks({
      random: () => 'c',
      changed,
      whenDetached: (attachmentId, run) => void ends.set(attachmentId, run),
    });
    looks.watch('one', root, ['a'], undefined);
    looks.watch('one', root, ['b'], undefined);
    looks.watch('two', root, ['b'], undefined);
    appendFileSync(join(path, 'a/f'), 'x');
    await wait(500);
    expect(changed).not.toHaveBeenCalled();
    ends.get('one')?.();
    appendFileSync(join(path, 'b/f'), 'x');
    await told(changed);
    expect(looks.watch('two', root, [], undefined)).toEqual({ watched: 0, polled: 0 });
    looks.watch('three', root, ['b'], undefined);
    root.close();
    appendFileSync(join(path, 'b/f'), 'x');
    await wait(500);
    expect(changed).not.toHaveBeenCalled();
    // One inotify instance serves the whole process, however many are watched.
    expect(openDescriptors()).toBeLessThanOrEqual(before + 1);
  });
});
