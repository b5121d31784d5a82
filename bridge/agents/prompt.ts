/**
 * What the operator typed and attached → ACP content blocks, in the order given, using only what the agent declared.
 * Used by running.ts.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ContentBlock } from '@agentclientprotocol/sdk';
import { Refusal } from '#protocol/errors.ts';
import type { PromptPart } from '#protocol/methods/conversation.ts';

type BlobPart = Extract<PromptPart, { type: 'blob' }>;
const isText = (mime: string): boolean =>
  /^text\/|^application\/(?:json|xml|x-ndjson|javascript|toml|yaml)$|\+(?:json|xml)$/.test(mime);

const blobBlock = (
  part: BlobPart,
  bytes: Uint8Array,
  capabilities: { images: boolean; embeddedContext: boolean },
): ContentBlock => {
  const { mime, name = 'attachment' } = part.blob;
  if (mime.startsWith('image/')) {
    if (!capabilities.images) throw new Refusal('blob_unsupported', { message: 'This agent does not take images.' });
    return { type: 'image', data: Buffer.from(bytes).toString('base64'), mimeType: mime };
  }
  if (!isText(mime)) throw new Refusal('blob_unsupported');
  const text = new TextDecoder().decode(bytes);
  if (!capabilities.embeddedContext) return { type: 'text', text: `Attached file ${name}:\n\n${text}` };
  return { type: 'resource', resource: { uri: `attachment:///${encodeURIComponent(name)}`, mimeType: mime, text } };
};

/** `cwd` is the workspace; a file part is a path in it. @throws Refusal blob_unsupported, and whatever `blob` throws */
export const promptBlocks = async (
  content: readonly PromptPart[],
  cwd: string,
  capabilities: { images: boolean; embeddedContext: boolean },
  blob: (sha256: string) => Promise<Uint8Array>,
): Promise<ContentBlock[]> => {
  const blocks: ContentBlock[] = [];
  for (const part of content) {
    if (part.type === 'text') blocks.push({ type: 'text', text: part.text });
    else if (part.type === 'file')
      blocks.push({ type: 'resource_link', uri: pathToFileURL(join(cwd, part.path)).href, name: part.path });
    else blocks.push(blobBlock(part, await blob(part.blob.sha256), capabilities));
  }
  return blocks;
};
