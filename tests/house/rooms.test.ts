import { readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Room {
  readonly path: string;
  readonly may: readonly { readonly name: string; readonly typesOnly: boolean }[];
}

const rooms = (): Room[] => {
  const text = readFileSync(join(root, 'docs/ARCHITECTURE.md'), 'utf8');
  const table = text.slice(text.indexOf('## Rooms'), text.indexOf('The gate reaches'));
  return table.split('\n').flatMap((line) => {
    const cells = line.split(' | ').map((cell) => cell.replaceAll(/^\|\s*|\s*\|$/g, '').trim());
    const path = /^`([^`]+)`$/.exec(cells[0] ?? '')?.[1];
    if (path === undefined || cells.length < 3) return [];
    const may = (cells[2] ?? '').split(',').map((each) => {
      const name = each.trim().replace('\\*', '*');
      return { name: name.replace(' (types)', ''), typesOnly: name.endsWith('(types)') };
    });
    return [{ path: path.replace(/\/$/, ''), may }];
  });
};

const sources = (path: string): string[] => {
  const full = join(root, path);
  if (!statSync(full).isDirectory()) return [path];
  return readdirSync(full, { withFileTypes: true }).flatMap((entry) => {
    const below = join(path, entry.name);
    if (['node_modules', '.svelte-kit', 'workspace'].includes(entry.name)) return [];
    return entry.isDirectory()
      ? sources(below)
      : /\.(ts|svelte)$/.test(entry.name) && !entry.name.endsWith('.d.ts')
        ? [below]
        : [];
  });
};

const imports = (file: string): { from: string; typesOnly: boolean }[] => {
  const text = readFileSync(join(root, file), 'utf8');
  const found = [...text.matchAll(/(?:^|\n)\s*(import|export)\s+(type\s+)?[^;'"]*?from\s*'([^']+)'/g)].map((match) => ({
    from: match[3] ?? '',
    typesOnly: match[2] !== undefined,
  }));
  const dynamic = [...text.matchAll(/(?<![\w.])import\(\s*'([^']+)'\s*\)(\.[A-Z])?/g)].map((match) => ({
    from: match[1] ?? '',
    typesOnly: match[2] !== undefined,
  }));
  const bare = [...text.matchAll(/(?:^|\n)import\s*'([^']+)'/g)].map((match) => ({
    from: match[1] ?? '',
    typesOnly: false,
  }));
  return [...found, ...dynamic, ...bare];
};

/** `bridge/ledger/feed.ts` → `bridge/ledger`; `protocol/json.ts` → `protocol`; a package by its name. */
const roomOf = (from: string, file: string): string | null => {
  if (from.startsWith('node:') || from.startsWith('$app/') || from.startsWith('./$types')) return null;
  if (from.startsWith('#protocol/')) return 'protocol';
  if (from.startsWith('#lib/')) return 'web';
  if (!from.startsWith('.'))
    return from.startsWith('@') ? from.split('/').slice(0, 2).join('/') : (from.split('/')[0] ?? from);
  const path = relative(root, normalize(join(root, dirname(file), from)));
  const [top = '', second = ''] = path.split('/');
  return top === 'bridge' ? (second.endsWith('.ts') ? 'bridge/main.ts' : `bridge/${second}`) : top;
};

describe('rooms of docs/ARCHITECTURE.md', () => {
  const all = rooms();
  const listed = Object.keys({
    ...(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { devDependencies: object }).devDependencies,
    ...(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object }).dependencies,
  });

  it('names every room there is', () => {
    const bridge = readdirSync(join(root, 'bridge'), { withFileTypes: true }).map((entry) => `bridge/${entry.name}`);
    expect(
      all
        .map(({ path }) => path)
        .filter((path) => path.startsWith('bridge/'))
        .sort(),
    ).toEqual(bridge.filter((path) => !path.endsWith('.json')).sort());
  });

  it.each(all.filter(({ path }) => path !== 'tests' && path !== 'bridge/cli'))(
    '$path imports only what its row allows',
    (room) => {
      const wrong = sources(room.path).flatMap((file) =>
        imports(file).flatMap(({ from, typesOnly }) => {
          const target = roomOf(from, file);
          if (target === null || target === room.path) return [];
          if (room.path === 'web')
            return target === 'protocol' || target === 'web' || listed.includes(target) ? [] : [`${file} ← ${from}`];
          const allowed = room.may.some(
            ({ name, typesOnly: only }) =>
              (name === target || (name === 'bridge/*' && target.startsWith('bridge/'))) && (typesOnly || !only),
          );
          return allowed ? [] : [`${file} ← ${from}${typesOnly ? ' (type)' : ''}`];
        }),
      );
      expect(wrong).toEqual([]);
    },
  );

  it('keeps the front-end packages out of the bridge and the protocol', () => {
    const front = [
      ...['svelte', '@sveltejs/kit', 'idb', 'comlink', 'shiki', 'markdown-it', 'virtua', 'diff'],
      '@noble/hashes',
    ];
    const wrong = [...sources('bridge'), ...sources('protocol')].flatMap((file) =>
      imports(file)
        .filter(({ from }) => front.includes(roomOf(from, file) ?? ''))
        .map(({ from }) => `${file} ← ${from}`),
    );
    expect(wrong).toEqual([]);
  });
});

describe('top level', () => {
  it('holds only what the house allows', () => {
    const allowed = new Set([
      '.ci',
      '.git',
      '.gitignore',
      'LICENSE',
      'README.md',
      'bridge',
      'docs',
      'package-lock.json',
      'package.json',
      'protocol',
      'static',
      'svelte.config.js',
      'tests',
      'tsconfig.json',
      'vite.config.ts',
      'web',
    ]);
    const generated = new Set(['node_modules', 'build', 'test-results', '.svelte-kit']);
    expect(readdirSync(root).filter((name) => !allowed.has(name) && !generated.has(name))).toEqual([]);
  });
});
