/**
 * What the terminals room gives: the operator's own shells, each behind a host process of its own, so that the bridge
 * never holds the master of a pseudo-terminal that a child could inherit (L-32). No agent reaches any of this.
 */
import type { Answer, Params } from '#protocol/methods.ts';
import type { TerminalServerFrame, TerminalSize } from '#protocol/methods/terminal.ts';

/** One attached page. Calls come in the order of what is to be sent. */
export interface TerminalViewer {
  frame(frame: TerminalServerFrame): void;
  bytes(bytes: Uint8Array): void;
  /** The terminal is gone, or the page was too slow. */
  close(reason: 'gone' | 'slow'): void;
}
export interface TerminalAttachment {
  /** Keys, in the order they were typed; at most `limits.terminalInputBytes`. */
  input(bytes: Uint8Array): void;
  /** Ignored from a page that does not own the size. */
  resize(size: TerminalSize): void;
  own(): void;
  /** Bytes drawn in all since the replay. */
  ack(bytes: number): void;
  detach(): void;
}

export interface Terminals {
  /** Null where terminals can be; otherwise why not, in plain words. */
  readonly absent: string | null;
  list(): Answer<'terminal.list'>['terminals'];
  /** @throws Refusal terminal_limit, unsupported_capability, not_a_directory and those of the walker */
  open(params: Params<'terminal.open'>): Promise<Answer<'terminal.open'>>;
  /** @throws Refusal terminal_gone */
  rename(terminalId: string, title: string): Answer<'terminal.rename'>;
  /** Ends the shell and everything under it. @throws Refusal terminal_gone */
  close(terminalId: string): Promise<void>;
  /** The viewer gets the replay first. Null where there is no such terminal. */
  attach(terminalId: string, size: TerminalSize, viewer: TerminalViewer): Promise<TerminalAttachment | null>;
  /** The workspace is being closed, or the bridge. */
  closeAll(workspaceId?: string): Promise<void>;
}
