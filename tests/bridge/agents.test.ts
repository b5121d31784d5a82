import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AnyEvent } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import { bridge, isAlive } from './process.ts';
import { Stage, Talk, until } from './stage.ts';

const stage = new Stage();
beforeAll(async () => void (await stage.start()));
afterEach(() => stage.quiet());
afterAll(() => stage.end());

const pidOf = (talk: Talk): Promise<number> =>
  talk.until('the agent', () => talk.all('agent.started').at(-1)?.data.pid);
const again = async (talk: Talk): Promise<Talk> => {
  await stage.start();
  return new Talk(await stage.bridge.client(), talk.conversationId);
};
const json = (events: readonly AnyEvent[]): string[] => events.map((event) => JSON.stringify(event));

describe('a prompt', () => {
  it('is stored before its agent answers, and delivered exactly once (case 7)', async () => {
    const talk = await stage.scriptedTalk({ initializeDelayMs: 3000 });
    const { turnId, seq } = await talk.send('are you there?');
    const before = await talk.stored();
    expect(before.find((event) => event.seq === seq)).toMatchObject({ type: 'turn.started', turnId });
    expect(before.some(({ type }) => type === 'agent.ready')).toBe(false);
    expect((await talk.summary()).state).toBe('starting');

    expect((await talk.ended(turnId)).data.stopReason).toBe('end_turn');
    expect(talk.said()).toBe('You said: are you there?');
    expect(talk.all('message').filter(({ data }) => data.role === 'user')).toHaveLength(1);
    expect(talk.all('agent.started')).toHaveLength(1);
  });

  it('is stopped while its agent still starts', async () => {
    const talk = await stage.scriptedTalk({ initializeDelayMs: 60_000 });
    const { turnId } = await talk.send('never mind');
    const pid = await pidOf(talk);
    await talk.client.change('conversation.cancel', { conversationId: talk.conversationId });
    expect((await talk.ended(turnId)).data.stopReason).toBe('cancelled');
    await until('the agent to be gone', () => !isAlive(pid));
    await until('the seat to be empty', async () => (await talk.summary()).state === 'idle');
  });
});

describe('what an agent sends that cannot be read', () => {
  it('becomes one visible notice each; everything around it is kept (case 9)', async () => {
    const talk = await stage.scriptedTalk();
    const ended = await talk.turn('[[say before]][[malformed]][[say  after]][[tool t1 Fine]][[done t1]]');
    expect(ended.data.stopReason).toBe('end_turn');
    expect(talk.said()).toContain('before');
    expect(talk.said()).toContain('after');
    const notices = talk.all('notice').filter(({ data }) => data.code === 'unreadable_event');
    expect(notices).toHaveLength(1);
    expect(notices[0]?.data.raw).toContain('bad');
    expect(talk.all('tool.called').map(({ data }) => data.toolCallId)).toEqual(['t1']);
  });

  it('a question without options is shown and can be got past (case 9)', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[permission-null q]][[say done]]');
    await talk.until('the notice', () => talk.all('notice').find(({ data }) => data.code === 'unreadable_event'));
    if (talk.all('turn.ended', turnId).length === 0) {
      await talk.client.change('conversation.cancel', { conversationId: talk.conversationId });
    }
    await talk.ended(turnId);
    expect((await talk.turn('hello')).data.stopReason).toBe('end_turn');
    expect(
      (await talk.client.call('receipt.list', { conversationId: talk.conversationId })).receipts.filter(
        ({ value }) => value === 'allow',
      ),
    ).toEqual([]);
  });
});

describe('permissions', () => {
  it('a late Allow after a cancel from elsewhere is refused, and nothing reads as approved (case 10)', async () => {
    const talk = await stage.scriptedTalk();
    const other = await stage.bridge.another();
    const { turnId } = await talk.send('[[permission x]]');
    const [asked] = await talk.asked();
    if (asked === undefined) throw new Error('unreachable');
    const seen = new Talk(other, talk.conversationId);
    await seen.asked();
    await other.change('conversation.cancel', { conversationId: talk.conversationId });
    await talk.until('the card to be withdrawn', () => talk.all('approval.withdrawn')[0]);
    await expect(talk.decide(asked, 'allow')).rejects.toMatchObject({ code: 'approval_withdrawn' });
    expect((await talk.ended(turnId)).data.stopReason).toBe('cancelled');
    expect(await talk.client.call('approval.get', { approvalId: asked.data.approvalId })).toMatchObject({
      status: { state: 'withdrawn', reason: 'turn_ended' },
    });
    const { receipts } = await talk.client.call('receipt.list', { conversationId: talk.conversationId });
    expect(receipts.filter(({ kind }) => kind === 'decision' || kind === 'outcome')).toEqual([]);
    expect((await talk.turn('and now?')).data.stopReason).toBe('end_turn');
    expect(talk.said()).toContain('You said: and now?');
  });

  it('five at once, answered 3, 1, 5, 2, 4, are five decisions of their own (case 13)', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[permissions 5]]');
    const asked = await talk.asked(5);
    const byCall = new Map(asked.map((each) => [each.data.toolCallId, each]));
    expect((await talk.summary()).pendingApprovals).toBe(5);
    const answers = { p3: 'allow', p1: 'deny', p5: 'allow', p2: 'allow', p4: 'deny' } as const;
    for (const [call, value] of Object.entries(answers)) {
      const one = byCall.get(call);
      if (one === undefined) throw new Error(`${call} was not asked about`);
      await talk.decide(one, value);
    }
    await talk.ended(turnId);
    for (const [call, value] of Object.entries(answers))
      expect(talk.said()).toContain(`${call}: ${value === 'allow' ? 'yes' : 'no'}\n`);
    const decided = talk.all('approval.decided');
    expect(new Set(decided.map(({ data }) => data.receiptId)).size).toBe(5);
    for (const { data } of decided) {
      const one = asked.find((each) => each.data.approvalId === data.approvalId);
      expect(data).toMatchObject({
        digest: one?.data.digest,
        value: answers[one?.data.toolCallId as keyof typeof answers],
      });
    }
    const { receipts } = await talk.client.call('receipt.list', { conversationId: talk.conversationId });
    const decisions = receipts.filter(({ kind }) => kind === 'decision');
    expect(decisions.map(({ approvalId }) => approvalId).sort()).toEqual(
      asked.map(({ data }) => data.approvalId).sort(),
    );
    for (const { receiptId } of decisions)
      expect((await talk.client.call('receipt.verify', { receiptId })).ok).toBe(true);
  });
});

describe('a session the agent does not know any more', () => {
  it('becomes a new one behind a divider; the transcript before it is untouched (case 23)', async () => {
    const talk = await stage.scriptedTalk({ takeUp: 'not_found' });
    await talk.turn('remember the number 7');
    await talk.client.change('conversation.close', { conversationId: talk.conversationId });
    const before = json(await talk.stored());
    expect((await talk.turn('which number?')).data.stopReason).toBe('end_turn');
    const lost = talk.all('agent.contextLost');
    expect(lost).toHaveLength(1);
    expect(lost[0]?.data.sentence.length).toBeGreaterThan(20);
    expect(json(await talk.stored()).slice(0, before.length)).toEqual(before);
  });

  it('an agent that ends while it takes the session up says so, and the transcript stays (case 23)', async () => {
    const talk = await stage.scriptedTalk({ exitOn: 'session/resume' });
    await talk.turn('hello');
    await talk.client.change('conversation.close', { conversationId: talk.conversationId });
    const before = json(await talk.stored());
    const ended = await talk.turn('hello again');
    expect(ended.data.stopReason).toBe('failed');
    expect(talk.all('agent.error').at(-1)?.data).toMatchObject({ code: 'resume_failed' });
    expect(json(await talk.stored()).slice(0, before.length)).toEqual(before);
    expect((await talk.summary()).state).toBe('idle');
  });
});

describe('large output', () => {
  it('of 10 MB is a blob with head and tail, and the page that shows it stays small (case 33)', async () => {
    const talk = await stage.scriptedTalk();
    expect((await talk.turn('[[tools 1 10000000]]')).data.stopReason).toBe('end_turn');
    const updated = talk.all('tool.updated').find(({ data }) => data.content !== undefined);
    const part = updated?.data.content?.[0];
    expect(part).toMatchObject({ type: 'text', blob: { bytes: 10_000_000 } });
    const blob = part?.type === 'text' ? part.blob : undefined;
    expect(blob?.head).toBe('x'.repeat(limits.inlineHeadUnits));
    expect(blob?.tail).toBe('x'.repeat(limits.inlineTailUnits));
    const page = await talk.client.call('conversation.history', {
      conversationId: talk.conversationId,
      beforeSeq: Number.MAX_SAFE_INTEGER,
    });
    expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(limits.pageBytes);
  });
});

describe('an agent that behaves badly fails alone, with a reason (case 76, L-33)', () => {
  const failures: readonly [string, Record<string, unknown>, RegExp][] = [
    [
      'answers initialize with an error',
      { initializeError: { code: -32603, message: 'no quota left' } },
      /no quota left/,
    ],
    ['speaks another version', { protocolVersion: 2 }, /version 2/],
    ['writes a million lines of garbage', { tinyLines: 1_000_000 }, /lines/],
    ['exits at once', { exitAtOnce: 0 }, /ended by itself/],
  ];
  it.each(failures)('%s', async (_what, script, reason) => {
    const { pid } = stage.bridge.ready;
    const talk = await stage.scriptedTalk(script);
    const ended = await talk.turn('hello');
    expect(ended.data.stopReason).toBe('failed');
    expect(talk.all('agent.error').at(-1)?.data.sentence).toMatch(reason);
    expect(await talk.summary()).toMatchObject({ state: 'idle', live: false });
    expect(isAlive(pid)).toBe(true);
  });

  it('a line of 10 MB, invalid UTF-8 and garbage are noise around an answer', async () => {
    const talk = await stage.scriptedTalk({ garbageLines: 20, hugeLineBytes: 10_000_000, binaryLine: true });
    expect((await talk.turn('[[garbage 5]][[huge 10000000]][[binary]][[say still here]]')).data.stopReason).toBe(
      'end_turn',
    );
    expect(talk.said()).toBe('still here');
    expect(talk.all('notice').some(({ data }) => data.code === 'agent_noise')).toBe(true);
  });

  it('a line beyond the bound is not held in memory', async () => {
    const talk = await stage.scriptedTalk();
    await talk.turn('hello');
    const before = stage.bridge.residentBytes();
    const { turnId } = await talk.send('[[huge 200000000]][[say still here]]');
    let most = 0;
    await until('the end of the turn', () => {
      most = Math.max(most, stage.bridge.residentBytes());
      return talk.all('turn.ended', turnId).length > 0;
    });
    expect(most - before).toBeLessThan(5 * limits.agentLineBytes);
    expect(talk.said()).toContain('still here');
  });

  it.each([
    ['exits in its turn', '[[say I go]][[exit 3]]', /code 3/],
    ['is killed in its turn', '[[say I go]][[kill SIGKILL]]', /SIGKILL/],
  ])('%s: the turn is interrupted, and the next message starts it again', async (_what, prompt, reason) => {
    const talk = await stage.scriptedTalk();
    const ended = await talk.turn(prompt);
    expect(ended.data.stopReason).toBe('interrupted');
    expect(talk.all('agent.exited').at(-1)?.data.sentence).toMatch(reason);
    expect(talk.said()).toBe('I go');
    expect((await talk.turn('hello')).data.stopReason).toBe('end_turn');
    expect(talk.all('agent.resumed')).toHaveLength(1);
  });

  it('closes its stdin: Stop ends the turn, and the next message is answered', async () => {
    const talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[close-stdin]][[say deaf]][[never]]');
    await talk.until('its word', () => talk.drafts.some((text) => text.includes('deaf')));
    await talk.client.change('conversation.cancel', { conversationId: talk.conversationId });
    expect((await talk.ended(turnId)).data.stopReason).toBe('cancelled');
    expect((await talk.turn('hello')).data.stopReason).toBe('end_turn');
  });

  it('an error for a prompt ends that turn alone', async () => {
    const talk = await stage.scriptedTalk();
    const ended = await talk.turn('[[error -32603 the model is overloaded]]');
    expect(ended.data).toMatchObject({ stopReason: 'failed' });
    expect(ended.data.sentence).toContain('the model is overloaded');
    const silent = await talk.turn('[[silent]]');
    expect(silent.data).toMatchObject({ stopReason: 'failed' });
    expect((await talk.turn('hello')).data.stopReason).toBe('end_turn');
  });
});

describe('SIGKILL of the bridge', () => {
  it('after SIGKILL of its agent leaves no turn working; the composer and Stop work (case 8)', async () => {
    let talk = await stage.scriptedTalk();
    const { turnId } = await talk.send('[[say thinking]][[never]]');
    await talk.until('its word', () => talk.drafts.includes('thinking'));
    process.kill(await pidOf(talk), 'SIGKILL');
    await stage.bridge.kill();

    talk = await again(talk);
    const stored = await talk.stored();
    expect(stored.filter((event) => event.type === 'turn.ended' && event.turnId === turnId)).toMatchObject([
      { data: { stopReason: 'interrupted' } },
    ]);
    expect(await talk.summary()).toMatchObject({ state: 'idle', live: false, lastStop: 'interrupted' });
    await expect(
      talk.client.change('conversation.cancel', { conversationId: talk.conversationId }),
    ).rejects.toMatchObject({ code: 'no_turn' });
    const { turnId: next } = await talk.send('[[say again]][[never]]');
    await talk.until('its word', () => talk.drafts.includes('again'));
    await talk.client.change('conversation.cancel', { conversationId: talk.conversationId });
    expect((await talk.ended(next)).data.stopReason).toBe('cancelled');
  });

  it('keeps every chunk that came more than the draft interval before it (case 26)', async () => {
    let talk = await stage.scriptedTalk();
    await talk.turn('hello');
    const { turnId } = await talk.send('[[stream 2000 10]]');
    // A frame comes 16 ms after the one before it, or later: 25 of them are 400 ms of the bridge, however slow we are.
    await talk.until('80 frames', () => talk.drafts.length >= 80);
    await stage.bridge.kill();
    const kept = talk.drafts.at(-26) ?? '';
    expect(kept).toContain('c10 ');

    talk = await again(talk);
    const message = (await talk.stored()).find(
      (event) => event.type === 'message' && event.turnId === turnId && event.data['role'] === 'agent',
    );
    expect(message?.data).toMatchObject({ interrupted: true });
    expect(String(message?.data['text']).startsWith(kept)).toBe(true);
  });

  it('leaves receipts that verify', async () => {
    const verified = await bridge(['verify', '--state', stage.bridge.state, '--all', '--json']);
    expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, problems: [] });
  });
});
