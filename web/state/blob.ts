/** Blobs of a conversation for a view: over HTTP, with what goes wrong in plain words. */
import type { BlobRef } from '#protocol/events.ts';
import { fetchBlob, type Target } from '#lib/link/blobs.ts';
import type { App } from './app.svelte.ts';
import type { Outcome } from './contract.ts';
import { failureOf, refused } from './failure.ts';

export const overHttp = async <T>(
  app: App,
  conversationId: string,
  act: (target: Target) => Promise<T>,
): Promise<Outcome<T>> => {
  const { link, session } = app;
  if (link === null || session.identity === null) return refused('offline');
  try {
    return { ok: true, value: await act({ link, base: session.identity.session.base, conversationId }) };
  } catch (error) {
    return { ok: false, failure: failureOf(error) };
  }
};

export const blobText = (app: App, conversationId: string, blob: BlobRef): Promise<Outcome<string>> =>
  overHttp(app, conversationId, async (target) => (await fetchBlob(target, blob.sha256)).text());
