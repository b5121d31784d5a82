/** Row 20: what an installation holds besides Node: our own files as packed, and the packages the bridge needs at run time. */
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './ground.ts';
import { atMost, figure, type Row } from './measure.ts';

const bytesOf = (path: string): number => {
  const facts = lstatSync(path);
  if (!facts.isDirectory()) return facts.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesOf(join(path, name)), 0);
};

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { optional?: boolean }>>;
}
const manifestOf = (directory: string): Manifest =>
  JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest;

/** Packages npm would install without dev and optional ones. */
const runtimePackages = (): string[] => {
  const found = new Set<string>();
  const visit = (names: readonly string[]): void => {
    for (const name of names) {
      const directory = join(root, 'node_modules', name);
      if (found.has(name) || !existsSync(directory)) continue;
      found.add(name);
      const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = manifestOf(directory);
      visit([
        ...Object.keys(dependencies),
        ...Object.keys(peerDependencies).filter((peer) => peerDependenciesMeta[peer]?.optional !== true),
      ]);
    }
  };
  visit(Object.keys(manifestOf(root).dependencies ?? {}));
  return [...found].sort();
};

export const sizeRows = (): Promise<Row[]> => {
  const own = ['bridge', 'protocol', 'build', 'docs', 'package.json', 'README.md', 'LICENSE'].filter((name) =>
    existsSync(join(root, name)),
  );
  const parts = [
    ...own.map((name) => [name, join(root, name)] as const),
    ...runtimePackages().map((name) => [name, join(root, 'node_modules', name)] as const),
  ].map(([name, path]) => [name, bytesOf(path) / 1e6] as const);
  const total = parts.reduce((sum, [, size]) => sum + size, 0);
  const note = parts
    .filter(([, size]) => size >= 0.1)
    .map(([name, size]) => `${name} ${size.toFixed(1)}`)
    .join(', ');
  return Promise.resolve([
    atMost(
      {
        row: '20',
        name: 'size',
        what: 'installed size without Node',
        unit: 'MB',
        floor: null,
        ours: figure([total]),
        note,
      },
      30,
    ),
  ]);
};
