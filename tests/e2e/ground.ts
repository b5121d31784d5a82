/** What every browser test stands on: a bridge of its own, and a watch that fails the test on any fault of the page. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test as base, expect, type BrowserContext, type ConsoleMessage, type Page } from '@playwright/test';
import type { AnyEvent } from '#protocol/events.ts';
import { Bridge, bridge as run, temporary } from '../bridge/process.ts';

export { expect };

/**
 * What the browser itself says while nobody listens on the bridge's port; nothing of ours can keep it from that. The last
 * is its own look for a newer service worker, which falls into the gap when the page was opened shortly before.
 */
export const refusedConnection =
  /ERR_CONNECTION_(REFUSED|RESET|CLOSED)|ERR_EMPTY_RESPONSE|WebSocket connection to .* failed|unknown error occurred when fetching the script/;

/**
 * Collects console errors, uncaught errors, policy violations and requests to any other origin, of the pages and their
 * workers. A test that causes one on purpose says so with `allow`, before it happens.
 */
export class Watch {
  readonly faults: string[] = [];
  readonly #allowed: RegExp[] = [];
  readonly #origins = new Set<string>();

  allow(fault: RegExp): void {
    this.#allowed.push(fault);
  }

  trust(origin: string): void {
    this.#origins.add(origin);
  }

  #note(fault: string): void {
    this.faults.push(fault);
  }

  /** What is left after what was allowed. */
  left(): string[] {
    return this.faults.filter((fault) => !this.#allowed.some((allowed) => allowed.test(fault)));
  }

  async attach(context: BrowserContext): Promise<void> {
    context.on('console', (message: ConsoleMessage) => {
      const isViolation = message.text().startsWith('policy violation');
      if (message.type() === 'error' || isViolation)
        this.#note(`console: ${message.text()} (${message.location().url})`);
    });
    context.on('weberror', (error) => this.#note(`uncaught: ${error.error().stack ?? error.error().message}`));
    context.on('request', (request) => {
      const url = new URL(request.url());
      const isLocal = ['blob:', 'data:', 'about:'].includes(url.protocol);
      if (!isLocal && !this.#origins.has(url.origin)) this.#note(`request: ${request.url().slice(0, 200)}`);
    });
    context.on('page', (page) =>
      page.on('websocket', (socket) => {
        if (!this.#origins.has(new URL(socket.url()).origin.replace('ws', 'http')))
          this.#note(`socket: ${socket.url()}`);
      }),
    );
    await context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) =>
        console.error(`policy violation: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`),
      );
    });
  }
}

/** Not only shown: what starts a conversation can be pressed once the exchange is over and the page is live. */
export const expectSignedIn = async (page: Page): Promise<void> => {
  await expect(page.getByRole('heading', { name: 'Your agents ask, you countersign.' })).toBeVisible();
  await expect(page.getByRole('main').getByRole('button', { name: 'New conversation' })).toBeEnabled();
};

interface Parts {
  bridge: Bridge;
  watch: Watch;
  /** Opens the launch URL in a new page of the context and waits until the page is live. */
  open: () => Promise<Page>;
}
interface Options {
  bridgeArgs: readonly string[];
  bridgeEnv: Record<string, string>;
}

export const test = base.extend<Parts & Options>({
  bridgeArgs: [['--practice'], { option: true }],
  bridgeEnv: [{}, { option: true }],
  bridge: async ({ bridgeArgs, bridgeEnv }, use) => {
    const state = temporary('e2e');
    const bridge = await new Bridge(state.path, bridgeArgs, bridgeEnv).start();
    await use(bridge);
    await bridge.stop();
    state.remove();
  },
  watch: async ({ bridge }, use) => {
    const watch = new Watch();
    watch.trust(bridge.ready.origin);
    await use(watch);
    expect(watch.left(), 'faults of the page').toEqual([]);
  },
  context: async ({ context, watch }, use) => {
    await watch.attach(context);
    await use(context);
  },
  open: async ({ context, bridge }, use) => {
    await use(async () => {
      const page = await context.newPage();
      await page.goto(bridge.ready.launchUrl);
      await expectSignedIn(page);
      return page;
    });
  },
});

export const practiceFolder = (bridge: Bridge): string => join(bridge.state, 'practice', 'workspace');

/** First click: the practice conversation, with its first prompt written but not sent. Answers its id. */
export const practise = async (page: Page): Promise<string> => {
  await page.getByRole('button', { name: 'Try it with the practice agent' }).click();
  await expect(page).toHaveURL(/\/c\/[^/]+$/);
  await expect(composer(page)).toBeEnabled();
  return new URL(page.url()).pathname.slice(3);
};

export const composer = (page: Page) => page.getByRole('textbox', { name: 'Message', exact: true });
export const cards = (page: Page) => page.locator('article.card');
export const waiting = (page: Page) => page.locator('article.card[data-state="pending"]');
export const said = (page: Page) => page.locator('article[aria-label="You"]');
export const log = (page: Page) => page.getByRole('log', { name: 'Conversation' });

export const send = async (page: Page, text: string): Promise<void> => {
  await composer(page).fill(text);
  await composer(page).press('Enter');
  await expect(composer(page)).toHaveValue('');
};

/** In a small window the end of a card has to be seen before it can be allowed; the card leads there. */
export const readToTheEnd = async (page: Page): Promise<void> => {
  const lead = waiting(page).getByRole('button', { name: 'Read to the end first' });
  await page.waitForTimeout(300);
  if (await lead.isVisible()) await lead.click();
};

/**
 * Allows the card that waits, as a person with a mouse does, and answers the digest that stood on it. A card that moved
 * under the pointer rightly ignores the press, so a person presses once more.
 */
export const allow = async (page: Page, by = 'Allow'): Promise<string> => {
  const card = waiting(page).first();
  await expect(card).toBeVisible({ timeout: 20_000 });
  const digest = (await card.getAttribute('data-digest')) ?? '';
  const same = page.locator(`article.card[data-digest="${digest}"]`);
  const button = same.getByRole('button', { name: by, exact: true });
  await expect(async () => {
    await readToTheEnd(page);
    if ((await same.getAttribute('data-state')) === 'pending') await button.click({ timeout: 2000 });
    await expect(same).toHaveAttribute('data-state', 'allowed', { timeout: 2000 });
  }).toPass({ timeout: 20_000 });
  return digest;
};

/** A conversation made and spoken to from beside the page, over the private socket. */
export const make = async (bridge: Bridge, agentId = 'practice'): Promise<string> => {
  const client = await bridge.client();
  const { workspaceId } = await client.change('workspace.open', { practice: true });
  const made = await client.change('conversation.create', { workspaceId, agentId });
  return made.conversationId;
};
export const idle = async (bridge: Bridge, conversationId: string): Promise<void> => {
  const client = await bridge.client();
  await expect
    .poll(async () => (await client.call('conversation.get', { conversationId })).state, { timeout: 30_000 })
    .toBe('idle');
};
/** Sends and waits until the turn is over. */
export const ask = async (bridge: Bridge, conversationId: string, text: string): Promise<void> => {
  const client = await bridge.client();
  await client.change('conversation.send', { conversationId, delivery: 'prompt', content: [{ type: 'text', text }] });
  await idle(bridge, conversationId);
};

/** Every stored event, oldest first. */
export const stored = async (bridge: Bridge, conversationId: string): Promise<AnyEvent[]> => {
  const client = await bridge.client();
  const { lastSeq } = await client.call('conversation.get', { conversationId });
  const events: AnyEvent[] = [];
  for (let before = lastSeq + 1; before > 1;) {
    const page = await client.call('conversation.history', { conversationId, beforeSeq: before });
    events.unshift(...page.events);
    before = page.firstSeq;
  }
  return events;
};
/** The texts of what was said, one for each message however many parts it was stored in. */
export const storedMessages = (events: readonly AnyEvent[], role: 'user' | 'agent'): string[] => {
  const texts = new Map<string, string>();
  for (const { type, data } of events) {
    if (type !== 'message' || data['role'] !== role) continue;
    const id = String(data['messageId']);
    texts.set(id, (texts.get(id) ?? '') + String(data['text']));
  }
  return [...texts.values()];
};

export const connection = (page: Page, state: string) => page.getByLabel(new RegExp(`^Connection: ${state}`));

/** The CLI finds every receipt of the bridge good. */
export const expectVerified = async (bridge: Bridge): Promise<void> => {
  const told = await run(['verify', '--all', '--json', '--state', bridge.state]);
  expect(JSON.parse(told.stdout)).toMatchObject({ ok: true, problems: [] });
  expect(told.code).toBe(0);
};

interface Exported {
  readonly kind: string;
  readonly subject: string;
  readonly shown: string | undefined;
  readonly value: string | undefined;
}
/** Receipts as `bridge conversations receipts` wrote them. */
export const exported = (folder: string): Exported[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.dsse.json'))
    .map((name) => {
      const envelope = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { payload: string };
      const statement = JSON.parse(Buffer.from(envelope.payload, 'base64').toString()) as {
        subject: { digest: { sha256: string } }[];
        predicate: { receipt: { kind: string }; decision: { shown: { sha256: string }; value: string } | null };
      };
      return {
        kind: statement.predicate.receipt.kind,
        subject: statement.subject[0]?.digest.sha256 ?? '',
        shown: statement.predicate.decision?.shown.sha256,
        value: statement.predicate.decision?.value,
      };
    });
