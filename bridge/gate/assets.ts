/**
 * The built app as a verified table (A-04, L-12). Every byte served was read and hashed at start and is served from
 * memory, so that a file altered later is never sent. What is packed is held packed only, and unpacked for the few that
 * ask for it plain. A request path is only a key. Called by `gate.ts`.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Pattern } from '#protocol/ids.ts';
import { wire } from '#protocol/wire.ts';
import { inlineScriptHashes, noStore, plain, type Headers } from './headers.ts';

interface Stored {
  readonly sha256: string;
  readonly bytes: number;
}
interface Table {
  readonly wire: number;
  readonly revision: string;
  readonly routes: readonly string[];
  readonly files: Readonly<Record<string, Stored & { readonly type: string; readonly br?: Stored }>>;
}

// By hand: the library of the schemas is a third of all that a start loads, and this is read before any of it.
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= 200;
const isStored = (value: unknown): value is Stored =>
  isRecord(value) &&
  typeof value['sha256'] === 'string' &&
  sha256Pattern.test(value['sha256']) &&
  Number.isSafeInteger(value['bytes']);
const isFile = ([path, entry]: [string, unknown]): boolean =>
  /^\/[A-Za-z0-9._/-]+$/.test(path) &&
  isRecord(entry) &&
  isStored(entry) &&
  isText(entry['type']) &&
  (entry['br'] === undefined || isStored(entry['br']));
const isTable = (value: unknown): value is Table =>
  isRecord(value) &&
  Number.isSafeInteger(value['wire']) &&
  isText(value['revision']) &&
  Array.isArray(value['routes']) &&
  value['routes'].every(isText) &&
  isRecord(value['files']) &&
  Object.entries(value['files']).every(isFile);

interface Asset {
  /** As it is held: packed with Brotli, or plain. */
  readonly bytes: Buffer;
  readonly isPacked: boolean;
  readonly sha256: string;
  readonly headers: Headers;
  readonly tag: string;
}
export interface AssetAnswer {
  readonly status: 200 | 304 | 404;
  readonly headers: Headers;
  readonly body: Buffer | string;
}
export interface Assets {
  readonly revision: string;
  /** Of the shell's inline scripts, for the CSP. */
  readonly scriptHashes: readonly string[];
  /** Total and exact: what is not in the table or the route list is a small 404, never HTML. */
  answer(url: string, accept: { readonly br: boolean; readonly tag: string | undefined }): AssetAnswer;
}

/** The built app cannot be served. The message names what is wrong and the command that mends it. */
export class AssetsUnusable extends Error {
  constructor(what: string, cause?: unknown) {
    super(`The built app cannot be served: ${what}. Run "npm start", or "npm run build" and start again.`, { cause });
    this.name = 'AssetsUnusable';
  }
}

const digest = (bytes: Buffer): string => hash('sha256', bytes, 'hex');

/** Synchronous: nothing else runs before the bridge listens, and hundreds of small reads in turn would take far longer. */
const readWhole = (path: string, otherwise: string): Buffer => {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new AssetsUnusable(otherwise, cause);
  }
};

const readVerified = (directory: string, path: string, entry: { sha256: string; bytes: number }): Buffer => {
  // The table's own grammar admits no empty, `.` or `..` component that leads elsewhere.
  if (
    path
      .split('/')
      .slice(1)
      .some((part) => part === '' || part === '.' || part === '..')
  )
    throw new AssetsUnusable(`${path} is not a name`);
  const bytes = readWhole(join(directory, path), `${path} is missing`);
  if (bytes.length !== entry.bytes || digest(bytes) !== entry.sha256) throw new AssetsUnusable(`${path} was altered`);
  return bytes;
};

const cacheControl = (path: string): string =>
  path.startsWith('/_app/immutable/') ? 'public, max-age=31536000, immutable' : 'no-cache';

const routePattern = (route: string): RegExp => {
  const parts = route
    .split('/')
    .map((part) => (/^\[[^\]]+\]$/.test(part) ? '[A-Za-z0-9._-]+' : part.replace(/[^A-Za-z0-9_-]/g, '\\$&')));
  return new RegExp(`^${parts.join('/')}$`);
};

const missing: AssetAnswer = { status: 404, headers: plain, body: 'Not found\n' };

const serve = (asset: Asset, accept: { br: boolean; tag: string | undefined }): AssetAnswer => {
  if (accept.tag === asset.tag) return { status: 304, headers: asset.headers, body: '' };
  if (!asset.isPacked) return { status: 200, headers: asset.headers, body: asset.bytes };
  if (accept.br) return { status: 200, headers: { ...asset.headers, 'Content-Encoding': 'br' }, body: asset.bytes };
  const body = process.getBuiltinModule('node:zlib').brotliDecompressSync(asset.bytes);
  // The packed twin has a hash of its own; that it holds the same is known only now.
  if (digest(body) !== asset.sha256) throw new AssetsUnusable('a packed file holds another');
  return { status: 200, headers: asset.headers, body };
};

/** Reads and verifies `<directory>/assets.json` and all it names. @throws AssetsUnusable */
export const loadAssets = (directory: string): Assets => {
  const source = readWhole(join(directory, 'assets.json'), 'it has not been built').toString('utf8');
  let json: unknown;
  try {
    json = JSON.parse(source);
  } catch (cause) {
    throw new AssetsUnusable('assets.json is not JSON', cause);
  }
  if (!isTable(json)) throw new AssetsUnusable('assets.json is not understood');
  if (json.wire !== wire) throw new AssetsUnusable('it was built for another version of the bridge');

  const assets = new Map<string, Asset>();
  let html = '';
  for (const [path, entry] of Object.entries(json.files)) {
    const body = readVerified(directory, path, entry);
    const br = entry.br === undefined ? null : readVerified(directory, `${path}.br`, entry.br);
    const tag = `"${entry.sha256.slice(0, 32)}"`;
    const headers = {
      'Content-Type': entry.type,
      'Cache-Control': cacheControl(path),
      ETag: tag,
      ...(br === null ? {} : { Vary: 'Accept-Encoding' }),
    };
    if (path === '/index.html') html = body.toString('utf8');
    assets.set(path, { bytes: br ?? body, isPacked: br !== null, sha256: entry.sha256, headers, tag });
  }
  const shell = assets.get('/index.html');
  if (shell === undefined) throw new AssetsUnusable('index.html is missing');
  const routes = json.routes.map(routePattern);
  return {
    revision: json.revision,
    scriptHashes: inlineScriptHashes(html),
    answer(url, accept) {
      const asset = assets.get(url);
      if (asset !== undefined) return serve(asset, accept);
      // Only the shell tolerates a query; it is the app's to read.
      const path = url.split('?', 1)[0] ?? url;
      return routes.some((route) => route.test(path))
        ? serve(shell, accept)
        : { ...missing, headers: { ...plain, ...noStore } };
    },
  };
};
