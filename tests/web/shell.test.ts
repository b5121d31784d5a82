import { beforeAll, describe, expect, it } from 'vitest';
import { findIn, snippetOf, wordsOf } from '../../web/cache/find.ts';
import { tokenIn } from '../../web/link/launch.ts';
import { inPages } from '../../web/state/list.svelte.ts';
import { readDraft, writeDraft } from '../../web/state/drafts.ts';
import { snippetParts } from '../../web/state/snippet.ts';
import { keysOf, needsNoField, shortcutFor, shortcutIds, showKeys, standardKeys } from '../../web/state/shortcuts.ts';
import { statementOf } from '../../web/state/envelope.ts';
import { browserName, dayGroup, elidePath, visible } from '../../web/text/format.ts';
import { fileLink } from '../../web/view/conversation/format.ts';
import { addToDraft, quoteLines } from '../../web/view/files/mention.ts';

class MemoryStorage implements Storage {
  #items = new Map<string, string>();
  get length(): number {
    return this.#items.size;
  }
  clear(): void {
    this.#items.clear();
  }
  getItem(key: string): string | null {
    return this.#items.get(key) ?? null;
  }
  key(index: number): string | null {
    return [...this.#items.keys()][index] ?? null;
  }
  removeItem(key: string): void {
    this.#items.delete(key);
  }
  setItem(key: string, value: string): void {
    this.#items.set(key, value);
  }
}

const press = (key: string, more: Partial<Parameters<typeof keysOf>[0]> = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  ...more,
});

describe('shortcuts as data (U-08)', () => {
  it('gives every action its own keys', () => {
    expect(new Set(Object.values(standardKeys)).size).toBe(shortcutIds.length);
  });
  it('reads the platform key as Mod', () => {
    expect(keysOf(press('k', { ctrlKey: true }), false)).toBe('Mod+K');
    expect(keysOf(press('k', { metaKey: true }), true)).toBe('Mod+K');
    expect(keysOf(press('k', { ctrlKey: true }), true)).toBe('Ctrl+K');
    expect(keysOf(press('?', { shiftKey: true }), false)).toBe('?');
    expect(keysOf(press('O', { ctrlKey: true, shiftKey: true }), false)).toBe('Mod+Shift+O');
  });
  it('takes no key of a composition (case 42)', () => {
    expect(keysOf(press('Enter', { isComposing: true }), false)).toBeNull();
    expect(keysOf(press('Enter', { keyCode: 229 }), false)).toBeNull();
  });
  it('lets a changed key replace the standard one', () => {
    expect(shortcutFor('Mod+K', { palette: 'Mod+J' })).toBeNull();
    expect(shortcutFor('Mod+J', { palette: 'Mod+J' })).toBe('palette');
  });
  it('keeps single keys out of text fields', () => {
    expect(needsNoField('/')).toBe(true);
    expect(needsNoField('Mod+K')).toBe(false);
  });
  it('shows keys as the platform writes them', () => {
    expect(showKeys('Mod+Shift+O', true)).toBe('⌘⇧O');
    expect(showKeys('Mod+K', false)).toBe('Ctrl K');
  });
});

describe('search of the offline copy (U-08)', () => {
  it('needs every word and marks each match', () => {
    expect(snippetOf('The leap year rule', wordsOf('YEAR leap'))).toBe('The \u0001leap\u0002 \u0001year\u0002 rule');
    expect(snippetOf('The leap year rule', wordsOf('leap month'))).toBeNull();
  });
  it('finds nothing in events without words', () => {
    const event = { id: 'e', conversationId: 'c', seq: 1, at: 1, type: 'plan', data: { entries: [] } };
    expect(findIn(event, ['plan'])).toBeNull();
  });
  it('takes marks apart and leaves everything else inert', () => {
    expect(snippetParts('a \u0001hit\u0002 <b>\u202e')).toEqual([
      { text: 'a ', hit: false },
      { text: 'hit', hit: true },
      { text: ' <b>\\u{202e}', hit: false },
    ]);
  });
});

describe('drafts (U-04)', () => {
  it('survive, and go when they are empty', () => {
    const storage = new MemoryStorage();
    expect(writeDraft(storage, 'c', { text: 'half a thought', attachments: [] }, 1)).toBe(true);
    expect(readDraft(storage, 'c').text).toBe('half a thought');
    writeDraft(storage, 'c', { text: '', attachments: [] }, 2);
    expect(storage.length).toBe(0);
  });
  it('are empty when what is stored is damaged', () => {
    const storage = new MemoryStorage();
    storage.setItem('countersign.draft.c', '{"text":5}');
    expect(readDraft(storage, 'c')).toEqual({ text: '', attachments: [] });
  });
});

describe('launch links (L-05)', () => {
  beforeAll(() => {
    Object.defineProperty(globalThis, 'location', { value: new URL('http://127.0.0.1:7433/'), configurable: true });
  });
  const token = 'A'.repeat(43);
  it('takes a link of this bridge or a bare token', () => {
    expect(tokenIn(` http://127.0.0.1:7433/#launch=${token}\n`)).toBe(token);
    expect(tokenIn(token)).toBe(token);
  });
  it('refuses a link of another origin, and anything that is not one', () => {
    for (const other of [
      `http://127.0.0.1:7434/#launch=${token}`,
      `http://localhost:7433/#launch=${token}`,
      `http://127.0.0.1:7433/#launch=${token}x`,
      'hello',
      '',
    ]) {
      expect(tokenIn(other)).toBeNull();
    }
  });
});

describe('words and paths for people', () => {
  it('writes out what cannot be seen (U-40)', () => {
    expect(visible('a\u202eb\u200bc\u0007')).toBe('a\\u{202e}b\\u{200b}c\\u{7}');
    expect(visible('árvíztűrő 🎉')).toBe('árvíztűrő 🎉');
  });
  it('keeps both ends of a long path', () => {
    const path = '/home/someone/code/very/deep/folder/structure/with/parser.ts';
    const short = elidePath(path, 30);
    expect(short).toHaveLength(30);
    expect(short.startsWith('/home/')).toBe(true);
    expect(short.endsWith('…/parser.ts')).toBe(true);
  });
  it('groups by calendar day, not by hours', () => {
    const now = new Date(2026, 10, 30, 0, 5).getTime();
    expect(dayGroup(now - 10 * 60_000, now)).toBe('yesterday');
    expect(dayGroup(now, now)).toBe('today');
    expect(dayGroup(now - 6 * 86_400_000, now)).toBe('week');
  });
  it('names browsers', () => {
    expect(
      browserName(
        'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36',
      ),
    ).toBe('Chromium 156 · Linux');
    expect(browserName('curl/8')).toBe('curl/8');
  });
  it('reads the statement out of an envelope and gives up on anything else', () => {
    expect(statementOf(JSON.stringify({ payload: btoa('{"a":1}') }))).toBe('{"a":1}');
    expect(statementOf('{')).toBeNull();
  });
});

describe('adding to the message (F-07)', () => {
  it('quotes lines in a fence that outgrows those inside (case 38)', () => {
    expect(quoteLines('a.md', 3, ['```', 'x', '```'])).toBe('@a.md:3-5\n````\n```\nx\n```\n````');
    expect(quoteLines('a.ts', 7, ['x'])).toBe('@a.ts:7\n```\nx\n```');
  });
  it('leaves what was typed as it was', () => {
    const conversation = { draft: 'see' } as Parameters<typeof addToDraft>[0];
    addToDraft(conversation, '@src/a.ts');
    expect(conversation.draft).toBe('see @src/a.ts ');
  });
});

describe('lists in pages', () => {
  const ask = (all: readonly number[], size: number) => (last: number | undefined) => {
    const from = last === undefined ? 0 : all.indexOf(last) + 1;
    const items = all.slice(from, from + size);
    return Promise.resolve({ ok: true as const, value: { items, more: from + size < all.length } });
  };
  it('asks on from the last row, and says whether older ones are left', async () => {
    expect(await inPages(1, ask([9, 8, 7, 6, 5], 2))).toEqual({ ok: true, value: { items: [9, 8], more: true } });
    expect(await inPages(2, ask([9, 8, 7, 6, 5], 2))).toEqual({ ok: true, value: { items: [9, 8, 7, 6], more: true } });
    expect(await inPages(7, ask([9, 8, 7, 6, 5], 2))).toEqual({
      ok: true,
      value: { items: [9, 8, 7, 6, 5], more: false },
    });
  });
  it('ends at a page without rows, whatever it promises', async () => {
    const none = () => Promise.resolve({ ok: true as const, value: { items: [], more: true } });
    expect(await inPages(3, none)).toEqual({ ok: true, value: { items: [], more: false } });
  });
  it('is as a whole what its failing page says', async () => {
    const failure = { code: 'offline' as const, message: 'off' };
    const second = (last: number | undefined) =>
      Promise.resolve(
        last === undefined ? { ok: true as const, value: { items: [1], more: true } } : { ok: false as const, failure },
      );
    expect(await inPages(2, second)).toEqual({ ok: false, failure });
  });
});

describe('links to files (U-12)', () => {
  it('open what lies in the workspace, by its path from there', () => {
    expect(fileLink('c1', '/w', '/w/src/a b.ts', 7)).toBe('/c/c1?file=src%2Fa+b.ts&line=7');
    expect(fileLink('c1', '/w', 'src/x&y=1.ts')).toBe('/c/c1?file=src%2Fx%26y%3D1.ts');
  });
  it('are not made for what lies elsewhere', () => {
    for (const path of ['/etc/passwd', '/workspace2/a', '../a', 'a/../../b', ''])
      expect(fileLink('c1', '/w', path)).toBeNull();
  });
});
