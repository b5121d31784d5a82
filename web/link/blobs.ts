/** Blobs travel over HTTP with a one-use ticket from the proven socket (D-01, D-60). */
import { isErrorCode, Refusal } from '#protocol/errors.ts';
import { blobRef, type BlobRef } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import { z } from '#protocol/schema.ts';
import type { Link } from './link.ts';

export interface Target {
  readonly link: Link;
  readonly base: string;
  readonly conversationId: string;
}

/** The refusal that an HTTP answer carries. */
const refusalOf = async (answer: Response): Promise<Refusal> => {
  const body = (await answer.json().catch(() => null)) as { error?: { code?: unknown; message?: unknown } } | null;
  const code = body?.error?.code;
  if (typeof code !== 'string' || !isErrorCode(code))
    return new Refusal(answer.status === 413 ? 'content_too_large' : 'internal_error');
  return new Refusal(code, typeof body?.error?.message === 'string' ? { message: body.error.message } : {});
};

const fetchBelow = async ({ link, base }: Target, path: string, init: RequestInit): Promise<Response> => {
  const { ticket } = await link.call('ticket.create', { path });
  const headers = { ...(init.headers as Record<string, string> | undefined), 'x-ticket': ticket };
  const answer = await fetch(base + path, { ...init, headers, cache: 'no-store', redirect: 'error' });
  if (!answer.ok) throw await refusalOf(answer);
  return answer;
};

/** @throws Refusal content_too_large, blob_unsupported and what the bridge refuses. */
export const uploadBlob = async (target: Target, content: Blob, name: string): Promise<BlobRef> => {
  if (content.size > limits.blobBytes) throw new Refusal('content_too_large');
  const path = `blob?conversation=${target.conversationId}&name=${encodeURIComponent(name)}`;
  const answer = await fetchBelow(target, path, {
    method: 'PUT',
    body: content,
    headers: { 'content-type': 'application/octet-stream' },
  });
  return z.parse(blobRef, await answer.json());
};

export const fetchBlob = async (target: Target, sha256: string): Promise<Blob> => {
  const answer = await fetchBelow(target, `blob/${sha256}?conversation=${target.conversationId}`, {});
  return answer.blob();
};
