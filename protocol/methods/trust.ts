/**
 * trust.*: the review of what a workspace would make agents, editors, git or its reader do, and the operator's answer to
 * it (W-10 to W-14). *Trusted* only means that the checks found nothing.
 */
import { limits } from '../limits.ts';
import { count, list, sha256, text, time, uuid, z } from '../schema.ts';
import type { Method } from './method.ts';
import { rootErrors } from './workspace.ts';

const relative = text(limits.pathBytes);

export const standings = ['trusted', 'caution', 'blocked'] as const;
export type Standing = (typeof standings)[number];
export const severities = ['block', 'warn', 'note'] as const;
export type Severity = (typeof severities)[number];
export const findingGroups = [
  'malware',
  'agent_config',
  'git',
  'execution',
  'text',
  'secrets',
  'links',
  'scan',
] as const;
export type FindingGroup = (typeof findingGroups)[number];

/** A file that runs code when an agent starts (G-23). */
export const trustFile = z.strictObject({
  path: relative,
  sha256: z.nullable(sha256),
  bytes: count,
  /** Which agents read it, and what it can start. */
  agents: list(text(100), 20),
  what: text(300),
});
export type TrustFile = z.infer<typeof trustFile>;

/** A line of a file with everything that would act or hide shown as an escape, cut. */
const shownLine = text(limits.trustEvidenceUnits);

export const trustFinding = z.strictObject({
  /** Same rule, file and exact words: same id, wherever the line went. */
  findingId: text(64),
  rule: text(64),
  group: z.enum(findingGroups),
  severity: z.enum(severities),
  path: relative,
  line: z.nullable(count),
  evidence: shownLine,
  /** The line with its neighbours; empty where the file is kept secret or has no lines. */
  around: list(z.strictObject({ line: count, text: shownLine }), 5),
  why: text(500),
  /** What to check next. */
  next: text(500),
  /** The app may open it (it is no secret file, and no folder). */
  openable: z.boolean(),
});
export type TrustFinding = z.infer<typeof trustFinding>;

export const trustState = z.strictObject({
  workspaceId: uuid,
  /** Null: not reviewed yet. */
  raw: z.nullable(z.enum(standings)),
  /** With the operator's acceptance. Null as `raw`. */
  effective: z.nullable(z.enum(standings)),
  /** Of what an acceptance would be for: root, standing, findings, digests. Null as `raw`. */
  fingerprint: z.nullable(sha256),
  reviewedAt: z.nullable(time),
  /** A review is under way and has looked at so much. */
  reviewing: z.nullable(z.strictObject({ files: count, bytes: count })),
  /** Blocking first. */
  findings: list(trustFinding, limits.trustFindings),
  /** How many there are, with those that are not listed. */
  found: count,
  files: list(trustFile, limits.trustFiles),
  /** `skipped` folders of dependencies and builds were not looked through. */
  scanned: z.strictObject({ files: count, bytes: count, skipped: count }),
  truncated: z.boolean(),
  acceptance: z.nullable(
    z.strictObject({
      at: time,
      by: z.enum(['operator', 'cli']),
      note: z.nullable(text(limits.noteUnits)),
      receiptId: uuid,
    }),
  ),
  /** Why the last acceptance does not count any more. */
  stale: z.nullable(text(500)),
  malware: z.strictObject({
    /** `absent`: no scanner is installed. `unavailable`: it is, and cannot work. */
    state: z.enum(['absent', 'pending', 'clean', 'detected', 'unavailable', 'error']),
    at: z.nullable(time),
    engine: z.nullable(text(100)),
    sentence: text(500),
  }),
});
export type TrustState = z.infer<typeof trustState>;

const asked = z.strictObject({ workspaceId: uuid });

export const trustMethods = {
  /** The operator's answer for exactly what `fingerprint` is of. */
  'trust.accept': {
    params: z.strictObject({ workspaceId: uuid, fingerprint: sha256, note: z.optional(text(limits.noteUnits)) }),
    result: trustState,
    capability: 'trust',
    mutates: true,
    errors: [...rootErrors, 'digest_mismatch'],
  },
  /** Looks anew where files that matter changed or the last review is old; does not wait long for a large folder. */
  'trust.get': {
    params: asked,
    result: trustState,
    capability: 'trust',
    mutates: false,
    errors: [...rootErrors],
  },
  /** Reviews now; answers when done. */
  'trust.review': {
    params: asked,
    result: trustState,
    capability: 'trust',
    mutates: false,
    errors: [...rootErrors],
  },
  /** Takes the acceptance back. */
  'trust.withdraw': {
    params: asked,
    result: trustState,
    capability: 'trust',
    mutates: true,
    errors: [...rootErrors, 'not_found'],
  },
} as const satisfies Record<string, Method>;
