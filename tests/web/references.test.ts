import { describe, expect, it } from 'vitest';
import type { WorkspaceSummary } from '../../protocol/methods/workspace.ts';
import { Elsewhere, messagePath, type FilePlace } from '../../web/state/elsewhere.svelte.ts';
import { offeredToRead, placeShown, placesOf } from '../../web/state/references.ts';

const workspace = (workspaceId: string, path: string, more: Partial<WorkspaceSummary> = {}): WorkspaceSummary => ({
  ...{ workspaceId, path, name: path.slice(path.lastIndexOf('/') + 1), practice: false, open: true },
  ...{ openedAt: 1, conversations: 0, problem: null },
  ...more,
});
const own = workspace('own', '/home/me/app');

describe('what a new conversation is offered to read (W-03)', () => {
  const ids = (all: readonly WorkspaceSummary[], of: WorkspaceSummary | null = own): string[] =>
    offeredToRead(all, of).map(({ workspaceId }) => workspaceId);
  it('is every other open folder that can be reached', () => {
    const closed = workspace('closed', '/home/me/old', { open: false });
    const gone = workspace('gone', '/home/me/gone', { problem: 'workspace_changed' });
    expect(ids([own, workspace('lib', '/home/me/lib'), closed, gone])).toEqual(['lib']);
  });
  it('is none inside its own, but one that begins with its name and one above it', () => {
    const others = [
      workspace('in', '/home/me/app/web'),
      workspace('app2', '/home/me/app2'),
      workspace('me', '/home/me'),
    ];
    expect(ids([own, ...others])).toEqual(['app2', 'me']);
  });
  it('is nothing as long as no workspace is chosen', () => expect(ids([own], null)).toEqual([]));
});

describe('which workspace the files panel shows (W-03)', () => {
  const reference = (workspaceId: string, path: string) => ({
    ...{ workspaceId, path, name: path.slice(path.lastIndexOf('/') + 1) },
  });
  const summary = {
    workspaceId: 'own',
    workspacePath: '/home/me/app',
    references: [reference('lib', '/home/me/lib'), reference('docs', '/home/me/docs'), reference('app', '/srv/app')],
  };
  const known = [own, workspace('lib', '/home/me/lib'), workspace('docs', '/home/me/docs', { open: false })];

  it('is a choice only where something is read beside the own', () => {
    expect(placesOf(null, known)).toEqual([]);
    expect(placesOf({ workspaceId: 'own', workspacePath: '/home/me/app' }, known)).toEqual([]);
  });
  it('is the own first; names that are alike are told apart by path, and closed ones cannot be chosen', () => {
    expect(placesOf(summary, known).map(({ label, open }) => [label, open])).toEqual([
      ['/home/me/app', true],
      ['lib', true],
      ['docs', false],
      ['/srv/app', false],
    ]);
  });
  it('is what was chosen while it is open and this conversation reads it, else the own', () => {
    const places = placesOf(summary, known);
    expect(placeShown(places, 'lib')?.path).toBe('/home/me/lib');
    for (const chosen of [null, 'own', 'docs', 'another']) expect(placeShown(places, chosen)).toBeNull();
    expect(placeShown(placesOf(summary, [own]), 'lib')).toBeNull();
  });
});

describe('a path added to a message', () => {
  it('is relative in the own workspace and absolute in another', () => {
    expect(messagePath({} as FilePlace, 'src/a.ts')).toBe('src/a.ts');
    expect(messagePath(new Elsewhere('/home/me/lib'), 'src/a.ts')).toBe('/home/me/lib/src/a.ts');
    expect(messagePath(new Elsewhere('/'), 'etc/hosts')).toBe('/etc/hosts');
  });
  it('keeps where one is apart from the dock', () => {
    const place = new Elsewhere('/home/me/lib');
    place.showFile('src/a.ts', 3);
    expect([place.file, place.line, place.folder]).toEqual(['src/a.ts', 3, 'src']);
    place.showFolder('docs');
    expect([place.file, place.line, place.folder]).toEqual([null, null, 'docs']);
  });
});
