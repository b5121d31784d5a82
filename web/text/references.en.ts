/** Sentences of workspaces that a conversation reads beside its own (W-03). */
import { formatCount } from './format.ts';

export const words = {
  also: 'Also read from…',
  about:
    'Through the bridge it may read there, and not write; secret files stay secret. An agent that opens files by itself is not held to this. It cannot be changed afterwards.',
  chosen: (count: number) => `${formatCount(count)} chosen`,
  most: (count: number) => `At most ${formatCount(count)}.`,
  reads: (count: number) => `reads ${formatCount(count)} more`,
  names: (names: readonly string[]) => `May also read: ${names.join(', ')}`,
  which: 'Workspace whose files are shown',
  readOnly: 'Read only',
  closed: 'closed',
} as const;
