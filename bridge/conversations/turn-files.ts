/** The files around a turn (F-23): recorded before the agent is asked and before the turn's end is stored. */
import type { Rooms } from './rooms.ts';
import type { Turn } from './turn.ts';

export class TurnFiles {
  readonly #conversationId: string;
  readonly #rooms: Pick<Rooms, 'checkpoints' | 'log'>;

  constructor(conversationId: string, rooms: Pick<Rooms, 'checkpoints' | 'log'>) {
    this.#conversationId = conversationId;
    this.#rooms = rooms;
  }

  async before(turn: Turn): Promise<void> {
    await this.#rooms.checkpoints.record(this.#conversationId, 'before_turn', turn.turnId, turn.abort.signal);
  }

  /** Names in the turn also what the agent wrote past us, as far as the files were recorded. */
  async after(turn: Turn): Promise<void> {
    const { checkpoints, log } = this.#rooms;
    // A turn that was stopped has an end worth recording all the same.
    const { signal } = new AbortController();
    if ((await checkpoints.record(this.#conversationId, 'after_turn', turn.turnId, signal)) === null) return;
    try {
      for (const path of await checkpoints.changedPaths(this.#conversationId, turn.turnId)) turn.changedPaths.add(path);
    } catch (error) {
      log({ event: 'changed_files_unknown', conversation: this.#conversationId, error });
    }
  }
}
