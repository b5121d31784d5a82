/** Who this browser is to the bridge: signed in by a launch, signed out, revoked; and which offline copy is its own. */
import { deleteCopies } from '#lib/cache/database.ts';
import { OfflineCopy } from '#lib/cache/copy.ts';
import { forgetIdentity, readIdentity, writeIdentity, type Identity } from '#lib/link/identity.ts';
import { exchange, tokenIn, type LaunchResult } from '#lib/link/launch.ts';
import { launched } from '#lib/link/start.ts';

interface Hooks {
  /** `kept` resolves once the browser would still know the session after a reload. */
  signedIn(identity: Identity, kept: Promise<void>): void;
  signedOut(): void;
  copyChanged(copy: OfflineCopy | null): void;
  onQuota(): void;
}

export type SignInProblem = 'notALink' | Extract<LaunchResult, { ok: false }>['why'];

const installationKey = 'countersign.installation';
interface Installation {
  readonly bridgeId: string;
  readonly lineage: string;
}

/** Outlives the session, so that the copy stays readable when signed out (L-05). */
const readInstallation = (): Installation | null => {
  try {
    const stored = JSON.parse(localStorage.getItem(installationKey) ?? 'null') as Partial<Installation> | null;
    return typeof stored?.bridgeId === 'string' && typeof stored.lineage === 'string'
      ? { bridgeId: stored.bridgeId, lineage: stored.lineage }
      : null;
  } catch {
    return null;
  }
};

/** Tells the bridge, so that the cookie expires and the session is gone there too; without a bridge only the key goes. */
const endSession = async (base: string): Promise<void> => {
  try {
    await fetch(`${base}logout`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
      cache: 'no-store',
    });
  } catch {
    // The bridge is off: its record of the session ends by time or by "bridge revoke".
  }
};

export class Session {
  identity = $state.raw<Identity | null>(null);
  copy = $state.raw<OfflineCopy | null>(null);
  problem = $state<SignInProblem | null>(null);
  working = $state(false);
  /** False until it is known whether this browser holds a session. */
  known = $state(false);
  #hooks: Hooks;

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
  }

  async start(): Promise<void> {
    const installation = readInstallation();
    if (installation !== null) this.#openCopy(installation);
    const launch = launched();
    if (launch !== null) await this.#take(launch);
    if (this.identity === null) {
      const identity = await readIdentity();
      // A spent link opened in a browser that is signed in already does no harm.
      if (identity !== null) {
        this.problem = null;
        this.#use(identity);
      }
    }
    this.known = true;
  }

  /** A launch URL or token that was pasted. True when signed in. */
  async signIn(pasted: string): Promise<boolean> {
    const token = tokenIn(pasted);
    if (token === null) {
      this.problem = 'notALink';
      return false;
    }
    return this.#take(exchange(token));
  }

  /** Deletes the key of this browser; the copy stays. */
  async signOut(): Promise<void> {
    const base = this.identity?.session.base;
    if (base !== undefined) await endSession(base);
    await forgetIdentity();
    this.identity = null;
    this.#hooks.signedOut();
  }

  /** The bridge said 410: key and copy go (D-53). */
  async revoked(): Promise<void> {
    const copy = this.copy;
    this.copy = null;
    this.#hooks.copyChanged(null);
    await copy?.close();
    await deleteCopies();
    localStorage.removeItem(installationKey);
    await this.signOut();
  }

  /** The bridge says which state stands behind it; after a restore it is another lineage, with a copy of its own. */
  confirm(installation: Installation): void {
    const { identity } = this;
    if (
      identity === null ||
      (identity.session.bridgeId === installation.bridgeId && identity.session.lineage === installation.lineage)
    )
      return;
    const renewed: Identity = { ...identity, session: { ...identity.session, ...installation } };
    this.identity = renewed;
    this.#remember(renewed);
    void writeIdentity(renewed);
  }

  async #take(launch: Promise<LaunchResult>): Promise<boolean> {
    this.working = true;
    const result = await launch;
    this.working = false;
    if (!result.ok) {
      this.problem = result.why;
      return false;
    }
    this.problem = null;
    // Connecting does not wait for the disk: making a database in a fresh profile takes longer than all the rest.
    const kept = writeIdentity(result.identity).catch((cause: unknown) => {
      // Refused by the browser: the session lasts as long as this page.
      console.warn('session: not kept', cause);
    });
    this.#use(result.identity, kept);
    await kept;
    return true;
  }

  #use(identity: Identity, kept: Promise<void> = Promise.resolve()): void {
    this.identity = identity;
    this.#remember(identity);
    this.#hooks.signedIn(identity, kept);
  }

  #remember({ session: { bridgeId, lineage } }: Identity): void {
    const before = readInstallation();
    const isNew = before?.bridgeId !== bridgeId || before.lineage !== lineage;
    localStorage.setItem(installationKey, JSON.stringify({ bridgeId, lineage }));
    this.#openCopy({ bridgeId, lineage }, isNew);
  }

  #openCopy({ bridgeId, lineage }: Installation, isNew = false): void {
    const copy = new OfflineCopy(bridgeId, lineage, { now: Date.now, onQuota: this.#hooks.onQuota, isNew });
    if (copy.name === this.copy?.name) {
      void copy.close();
      return;
    }
    void this.copy?.close();
    this.copy = copy;
    this.#hooks.copyChanged(copy);
    // Copies of other installations on this port can never be read again.
    void deleteCopies(copy.name);
  }
}
