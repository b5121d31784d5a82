// Writes build/assets.json, the table the bridge verifies before it listens (A-04, L-12): every file with its sha256,
// size and type, its Brotli sibling where that is smaller, the routes of the app, the wire version, the source revision.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { wire } from '../protocol/wire.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = join(root, 'build');
const revision = process.argv[2] ?? 'dev';

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.wasm': 'application/wasm',
  '.txt': 'text/plain; charset=utf-8',
};
const compressible = new Set(['.html', '.js', '.css', '.json', '.webmanifest', '.svg', '.txt']);
const digest = (bytes) => createHash('sha256').update(bytes).digest('hex');

const walk = (path) =>
  readdirSync(join(folder, path))
    .sort()
    .flatMap((name) => {
      const below = `${path}/${name}`;
      return statSync(join(folder, below)).isDirectory() ? walk(below) : [below];
    });

/** `/c/[id]` from web/routes/c/[id]/+page.svelte; groups in parentheses are not part of a URL. */
const routesBelow = (path, url) =>
  readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory())
      return routesBelow(join(path, entry.name), /^\(.*\)$/.test(entry.name) ? url : `${url}/${entry.name}`);
    return entry.name === '+page.svelte' ? [url === '' ? '/' : url] : [];
  });

for (const path of walk('')) if (/\.(br|gz)$/.test(path) || path === '/assets.json') rmSync(join(folder, path));
const files = {};
for (const path of walk('')) {
  const bytes = readFileSync(join(folder, path));
  const type = types[extname(path)];
  if (type === undefined) throw new Error(`no content type for ${path}`);
  const entry = { sha256: digest(bytes), bytes: bytes.length, type };
  if (compressible.has(extname(path)) && bytes.length > 512) {
    // 5 % smaller than 9 for two seconds of a build; 11 would be 2 % more for ten.
    const small = brotliCompressSync(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    });
    if (small.length < bytes.length * 0.9) {
      writeFileSync(join(folder, `${path}.br`), small);
      entry.br = { sha256: digest(small), bytes: small.length };
    }
  }
  files[path] = entry;
}
const routes = routesBelow(join(root, 'web', 'routes'), '').sort();
writeFileSync(join(folder, 'assets.json'), JSON.stringify({ wire, revision, routes, files }, null, 1));
