/**
 * Blobs over HTTP (D-60): content-addressed attachments of a conversation, under the same guards as the socket and a
 * one-use ticket besides. Images are what their first bytes say. Called by `gate.ts`.
 */
import { createReadStream } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Refusal, type ErrorCode } from '#protocol/errors.ts';
import { limits } from '#protocol/limits.ts';
import type { Blobs } from '../ledger/contract.ts';
import type { Headers } from './headers.ts';
import { noStore } from './headers.ts';
import { readBody } from './listen.ts';

export interface BlobDeps {
  readonly blobs: Blobs;
  readonly hasConversation: (conversationId: string) => boolean;
  readonly headers: Headers;
}

const starts = (bytes: Uint8Array, at: number, wanted: string): boolean =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1', at, at + wanted.length) === wanted;
const images: readonly { readonly mime: string; readonly is: (bytes: Uint8Array) => boolean }[] = [
  { mime: 'image/png', is: (bytes) => starts(bytes, 0, '\x89PNG\r\n\x1a\n') },
  { mime: 'image/jpeg', is: (bytes) => starts(bytes, 0, '\xff\xd8\xff') },
  { mime: 'image/gif', is: (bytes) => starts(bytes, 0, 'GIF87a') || starts(bytes, 0, 'GIF89a') },
  { mime: 'image/webp', is: (bytes) => starts(bytes, 0, 'RIFF') && starts(bytes, 8, 'WEBP') },
];

/** What the bytes are, whatever they were called: a checked image, UTF-8 text without NUL, or bytes. */
export const sniff = (bytes: Uint8Array): string => {
  const image = images.find((one) => one.is(bytes));
  if (image !== undefined) return image.mime;
  if (bytes.includes(0)) return 'application/octet-stream';
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return 'text/plain';
  } catch {
    return 'application/octet-stream'; // not UTF-8
  }
};

const statusOf: Partial<Record<ErrorCode, number>> = {
  bad_request: 400,
  unknown_conversation: 404,
  blob_unknown: 404,
  content_too_large: 413,
  blob_unsupported: 415,
  rate_limited: 429,
  read_only: 503,
};

/** An error as the frames say it, in JSON. */
export const answerRefusal = (
  response: ServerResponse,
  headers: Headers,
  refusal: Refusal,
  status = statusOf[refusal.code] ?? 500,
): void => {
  const { code, message, retryable } = refusal;
  answerJson(response, headers, status, { error: { code, message, retryable } });
};

export const answerJson = (response: ServerResponse, headers: Headers, status: number, body: object): void => {
  const bytes = Buffer.from(JSON.stringify(body));
  // A refusal may leave a body unread: the connection ends with it.
  const ending = status >= 400 ? { Connection: 'close' } : {};
  response
    .writeHead(status, {
      ...headers,
      ...noStore,
      ...ending,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': bytes.length,
    })
    .end(bytes);
};

const dispositionOf = (mime: string, name: string | null): string => {
  const kind = mime.startsWith('image/') ? 'inline' : 'attachment';
  // RFC 8187: percent-encoded UTF-8; encodeURIComponent leaves ' ( ) * as they are.
  const encoded = encodeURIComponent((name ?? 'blob').toWellFormed()).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${kind}; filename*=UTF-8''${encoded}`;
};

export class BlobDoor {
  readonly #deps: BlobDeps;
  #uploads = 0;

  constructor(deps: BlobDeps) {
    this.#deps = deps;
  }

  /** `rest` is `blob?conversation=ID&name=N`. Answers the blob's reference. */
  async put(rest: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const query = new URLSearchParams(rest.slice(rest.indexOf('?')));
    const conversationId = query.get('conversation') ?? '';
    const name = query.get('name') ?? undefined;
    if (!this.#deps.hasConversation(conversationId)) throw new Refusal('unknown_conversation');
    if (name !== undefined && Buffer.byteLength(name) > limits.nameBytes) throw new Refusal('bad_request');
    if (this.#uploads >= limits.blobUploads) throw new Refusal('rate_limited');
    this.#uploads += 1;
    try {
      const bytes = await readBody(request, response, limits.blobBytes);
      if (bytes === null) throw new Refusal('content_too_large');
      const reference = await this.#deps.blobs.put(conversationId, bytes, { mime: sniff(bytes), name });
      answerJson(response, this.#deps.headers, 200, reference);
    } finally {
      this.#uploads -= 1;
    }
  }

  /** `rest` is `blob/<sha256>?conversation=ID`. Served so that nothing in it can run, wherever it is opened. */
  async get(rest: string, response: ServerResponse): Promise<void> {
    const [path = '', query = ''] = rest.split('?', 2);
    const found = this.#deps.blobs.read(
      new URLSearchParams(query).get('conversation') ?? '',
      path.slice('blob/'.length),
    );
    if (found === null) throw new Refusal('blob_unknown');
    const source = createReadStream(found.path);
    response.writeHead(200, {
      ...this.#deps.headers,
      ...noStore,
      'Content-Security-Policy': 'sandbox',
      'Content-Type': found.mime === 'text/plain' ? 'text/plain; charset=utf-8' : found.mime,
      'Content-Length': found.bytes,
      'Content-Disposition': dispositionOf(found.mime, found.name),
    });
    await pipeline(source, response);
  }
}
