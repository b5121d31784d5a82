/** A process that appends, streams and reports each acknowledged seq on its own line, until it is killed. */
import { openIn, message, putConversation } from './open.ts';

const [directory = '', conversationId = ''] = process.argv.slice(2);
const ledger = openIn(directory);
await ledger.commit((tx) => putConversation(tx, conversationId));
for (;;) {
  const works = Array.from({ length: 8 }, () =>
    ledger.commit((tx) => tx.append(conversationId, message('x'.repeat(300)))),
  );
  ledger.feed.text(conversationId, { turnId: null, messageId: 'm', role: 'agent', part: 0, text: 'streaming ' });
  for (const event of await Promise.all(works)) process.stdout.write(`${event?.seq ?? 0}\n`);
}
