/**
 * The thin edge between an attachment and its transport: WebSocket, control socket, or a pair of functions in this
 * process. Implemented by `socket.ts`, `control.ts` and `bridge run`; used by `attachment.ts` alone.
 */
export interface ChannelEvents {
  /** One whole frame, decoded as UTF-8, within the frame bound. */
  text(text: string): void;
  /** The peer is alive, without having said anything. */
  seen(): void;
  /** Called once, whoever ended it. */
  closed(): void;
}
export interface Channel {
  /** Reading begins here. Called once. */
  open(events: ChannelEvents): void;
  /** Queues one frame; `sent` runs once the peer's kernel took it, or never when the channel ends before. Never throws. */
  send(text: string, sent: () => void): void;
  pause(): void;
  resume(): void;
  /** Asks the transport whether the peer lives; null where its end is noticed without asking. */
  readonly ping: (() => void) | null;
  /** Says why, where the transport can, and ends; a peer that does not answer is cut off. Idempotent. */
  close(code: number, reason: string): void;
}
