/**
 * Who asks. Made by the gate alone, after it judged the connection; it travels with every command, so that rooms
 * decide by typed facts and never by a request.
 */
export type Actor =
  /** A page that proved possession of its key on this socket. */
  | {
      readonly kind: 'browser';
      readonly attachmentId: string;
      readonly sessionId: string;
      readonly keyId: string;
      readonly publicKeySpki: Uint8Array;
    }
  /** The control socket. `operator` is false for a peer inside an agent's process tree (L-35). */
  | {
      readonly kind: 'cli';
      readonly attachmentId: string;
      readonly pid: number | null;
      readonly operator: boolean;
      readonly tty: boolean;
    }
  /** `bridge run` composing the rooms in its own process. */
  | { readonly kind: 'local'; readonly attachmentId: string; readonly tty: boolean };

/** A person of this installation, not a program inside an agent's tree. */
export const isOperator = (actor: Actor): boolean => actor.kind !== 'cli' || actor.operator;
