/**
 * The listener before the rooms behind it are loaded: it says that a bridge is here and hands out the verified app,
 * which needs nothing else; every other request waits for `enter`. Judged like all others. Called by the CLI's start,
 * and by `gate.ts` where nobody did.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { loadAssets, type Assets } from './assets.ts';
import type { LogLine } from './attachment.ts';
import { noStore, securityHeaders, type Headers } from './headers.ts';
import { endBare, listenHttp, type Allowed, type Listener } from './listen.ts';

/** What is behind: the door and the upgrade to the app's socket. */
export interface Behind {
  answer(allowed: Allowed, request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** The status to refuse with, or null when the connection is taken. */
  upgrade(allowed: Allowed, request: IncomingMessage, socket: Duplex, head: Buffer): number | null;
  /** `/b/<segment>/`, asked for every request: it may be rotated. */
  base(): string;
}
export interface Porch {
  readonly listener: Listener;
  readonly assets: Assets;
  readonly headers: Headers;
  enter(behind: Behind): void;
}
export interface PorchDeps {
  /** 0 takes a free one. */
  readonly port: number;
  /** The built app, with its `assets.json`. */
  readonly assetsDirectory: string;
  readonly log: (line: LogLine) => void;
  /** The path segment, where there is one already: until `enter` nothing below another is let in. */
  readonly segment: string | null;
}

const answerAsset = (
  porch: { assets: Assets; headers: Headers; log: PorchDeps['log'] },
  url: string,
  request: IncomingMessage,
  response: ServerResponse,
): void => {
  const encodings = String(request.headers['accept-encoding'] ?? '').split(',');
  const br = encodings.some((one) => one.trim().split(';')[0] === 'br');
  const answer = porch.assets.answer(url, { br, tag: request.headers['if-none-match'] });
  if (answer.status === 404) porch.log({ event: 'refused', reason: 'path', status: 404 });
  response
    .writeHead(answer.status, {
      ...porch.headers,
      ...answer.headers,
      ...(answer.status === 304 ? {} : { 'Content-Length': Buffer.byteLength(answer.body) }),
    })
    .end(answer.body);
};

/** Verifies the app and listens on 127.0.0.1. @throws AssetsUnusable, or the system's error (EADDRINUSE) */
export const openPorch = async ({ port, assetsDirectory, log, segment }: PorchDeps): Promise<Porch> => {
  const assets = loadAssets(assetsDirectory);
  const headers = securityHeaders(assets.scriptHashes);
  const entered = Promise.withResolvers<Behind>();
  let behind: Behind | null = null;
  let listensOn = port;
  const listener = await listenHttp({
    port,
    log,
    headers,
    ground: () => ({ port: listensOn, base: behind?.base() ?? (segment === null ? '' : `/b/${segment}/`) }),
    answer: async (allowed, request, response) => {
      if (allowed.kind === 'up') response.writeHead(204, { ...headers, ...noStore }).end();
      else if (allowed.kind === 'asset') answerAsset({ assets, headers, log }, allowed.url, request, response);
      else await (behind ?? (await entered.promise)).answer(allowed, request, response);
    },
    upgrade: (allowed, request, socket, head) => {
      if (behind !== null) return behind.upgrade(allowed, request, socket, head);
      void entered.promise.then((entering) => {
        const status = entering.upgrade(allowed, request, socket, head);
        if (status !== null) endBare(socket, status, headers);
      });
      return null;
    },
  });
  listensOn = listener.port;
  return {
    listener,
    assets,
    headers,
    enter: (one) => {
      behind = one;
      entered.resolve(one);
    },
  };
};
