/**
 * The action and its digest, and whether a served effect is the one a permission named. Pure but for the nonce.
 * The rule not to break: everything a decision is bound to goes in here, and no word of the agent's does.
 */
import { createHash, randomBytes } from 'node:crypto';
import { canonical, type Json } from '#protocol/json.ts';
import { limits } from '#protocol/limits.ts';
import type { ApprovalRequest, Desk } from './contract.ts';

const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');
const sha256 = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** Larger parts go into the action by digest, so that its bytes stay within their bound. */
const bounded = (part: Json): Json => {
  const bytes = utf8(canonical(part));
  return bytes.length <= limits.actionBytes / 2 - limits.pathBytes
    ? part
    : { sha256: sha256(bytes), bytes: bytes.length };
};

/** Canonical bytes with a fresh nonce, and their sha256: what is shown, decided on, signed and run is this. */
export const actionOf = (request: ApprovalRequest): { bytes: Uint8Array; digest: string } => {
  const { agent, workspace } = request;
  const bytes = utf8(
    canonical({
      kind: request.kind,
      conversation: request.conversationId,
      turn: request.turnId,
      toolCall: request.toolCallId,
      agent: {
        id: agent.id,
        executableSha256: agent.executableSha256,
        entrySha256: agent.entrySha256,
        session: agent.session,
      },
      workspace: { id: workspace.id, rootSha256: workspace.rootSha256 },
      effects: bounded(request.effects),
      detail: bounded(request.detail),
      nonce: randomBytes(limits.nonceBytes).toString('base64url'),
    }),
  );
  return { bytes, digest: sha256(bytes) };
};

/** A permission for this one effect and nothing else: the rest of a larger one would ride along unseen. */
export const isOnlyEffect = (effects: readonly Json[], effect: Parameters<Desk['consume']>[1]): boolean => {
  const wanted: Json =
    effect.type === 'write'
      ? { type: 'write', path: effect.path, contentSha256: effect.contentSha256 }
      : { type: 'execute', argv: effect.argv, cwd: effect.cwd };
  return effects.length === 1 && canonical(effects[0]) === canonical(wanted);
};
