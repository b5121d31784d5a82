/** Consent integrity (T34, I14): what was shown is what was signed is what the agent got leave for, byte for byte. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonical } from '#protocol/json.ts';
import { statementSchema } from '#protocol/receipts.ts';
import { z } from '#protocol/schema.ts';
import type { ApprovalRequest } from '../../bridge/approvals/contract.ts';
import { describeCommand, describeWrite } from '../../bridge/approvals/describe.ts';
import { describePermission } from '../../bridge/approvals/permission.ts';
import { about, asked, openPage, openRoom, temporary } from './parts.ts';

const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');
/** Anything an agent can send: letters, blanks, quotes, controls, other scripts, invisible ones; whole characters. */
const text = fc.string({ unit: 'binary', maxLength: 40 }).map((value) => value.toWellFormed());
const word = text.filter((value) => value !== '');

const command = fc.record({ program: word, args: fc.array(text, { maxLength: 5 }), value: text });
const action: fc.Arbitrary<{ request: ApprovalRequest; exact: (detail: Record<string, unknown>) => void }> = fc.oneof(
  command.map(({ program, args, value }) => ({
    request: asked(describeCommand({ command: program, args, env: [{ name: 'MODE', value }], cwd: '/w' }, about)),
    exact: (detail: Record<string, unknown>) => expect(detail['argv']).toEqual([program, ...args]),
  })),
  text.map((content) => ({
    request: asked(describeWrite({ path: 'src/date.js', current: about.readCurrent('src/date.js'), content }, about)),
    exact: (detail: Record<string, unknown>) => expect(detail['contentSha256']).toBe(sha256(content)),
  })),
  fc.record({ title: word, input: fc.dictionary(word, text, { maxKeys: 4 }) }).map(({ title, input }) => {
    const rawInput = JSON.stringify(input);
    const call = { toolCallId: 'c', title: `said: ${title}`, kind: 'other' as const, rawInput };
    return {
      request: asked(describePermission(call, about), { toolCallId: 'c' }),
      exact: (detail: Record<string, unknown>) => {
        expect(detail['rawInput']).toBe(rawInput.toWellFormed());
        expect(canonical(detail as never)).not.toContain('said: ');
      },
    };
  }),
);

it('T34: of 500 generated actions, the bytes shown, decided on, signed and answered are the same', async () => {
  const directory = temporary();
  const room = await openRoom(directory.path);
  const page = openPage();
  try {
    await fc.assert(
      fc.asyncProperty(action, async ({ request, exact }) => {
        const answer = room.desk.ask(request);
        const [card] = await room.waiting(1);
        if (card === undefined) throw new Error('nothing waits');
        // Shown: the event that every window draws the card from.
        const shown = room.events('approval.requested').at(-1)?.data as { digest: string; facts: { headline: string } };
        expect(shown.digest).toBe(card.digest);
        expect(shown.facts.headline).not.toContain('said: ');
        await room.decide(card, 'allow', page);
        const verdict = await answer;
        if (verdict.value !== 'allow') throw new Error(`ended as ${verdict.value}`);

        const action = room.ledger.read.action(card.digest);
        const receipt = room.ledger.read.receipt(verdict.receiptId);
        if (action === null || receipt === null) throw new Error('not kept');
        expect(sha256(action)).toBe(shown.digest);
        const { subject, predicate } = z.parse(statementSchema, JSON.parse(Buffer.from(receipt.payload).toString()));
        expect(subject[0]?.digest.sha256).toBe(shown.digest);
        expect(predicate.decision?.shown.sha256).toBe(shown.digest);
        const signed = JSON.parse(Buffer.from(action).toString()) as {
          detail: Record<string, unknown>;
          effects: unknown;
        };
        expect(signed.effects).toEqual(JSON.parse(canonical(request.effects)));
        exact(signed.detail);
      }),
      { numRuns: 500, seed: 34 },
    );
  } finally {
    await room.close();
    directory.remove();
  }
});
