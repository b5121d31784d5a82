/** The words of the trust review: chip, screen, and the step of a new conversation. */
import type { FindingGroup, Severity, TrustState } from '#protocol/methods/trust.ts';
import { formatCount } from './format.ts';

const plural = (count: number, one: string, many: string): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`;

/** What a chip says: the standing, whether it was accepted, or that nobody has looked yet. */
export type TrustWord = 'trusted' | 'caution' | 'blocked' | 'accepted' | 'unreviewed';
export const trustWord = ({ raw, effective }: Pick<TrustState, 'raw' | 'effective'>): TrustWord =>
  raw === null || effective === null ? 'unreviewed' : raw === effective ? raw : 'accepted';

export const trustText = {
  title: 'Trust review',
  lead: 'What the files of this folder would make agents, editors, git or a reader do. Nothing of it was run.',
  word: {
    trusted: 'trusted',
    caution: 'caution',
    blocked: 'blocked',
    accepted: 'accepted',
    unreviewed: 'not reviewed',
  } satisfies Record<TrustWord, string>,
  explain: {
    trusted: 'These checks found nothing. That is all trusted means.',
    caution: 'Agents work here, rules that allow pause, and agents that read what was found wait for you.',
    blocked: 'No agent works here until this is mended or accepted.',
    accepted: 'You accepted exactly what was found. If it changes, this is asked again.',
    unreviewed: 'The folder has not been looked through yet.',
  } satisfies Record<TrustWord, string>,
  raw: 'The checks say',
  effective: 'What counts',
  looked: (files: number, size: string) => `${plural(files, 'file', 'files')} looked at, ${size} read`,
  skipped: (count: number) =>
    `${plural(count, 'folder', 'folders')} of installed dependencies or build results left out`,
  reviewedAt: 'Reviewed',
  reviewing: (files: number) => (files === 0 ? 'Looking…' : `Looking: ${plural(files, 'file', 'files')} so far…`),
  again: 'Review again',
  truncated: 'The folder is larger than one review looks at. What was not looked at may hold more.',
  more: (count: number) =>
    `${plural(count, 'finding is', 'findings are')} not listed: more of the same in the same files, or beyond what is sent.`,
  none: 'These checks found nothing.',
  noneHint: 'That is all trusted means.',
  findings: 'What was found',
  group: {
    malware: 'Malware',
    agent_config: 'Configuration of agents and editors',
    git: 'Git',
    execution: 'Running code',
    text: 'Text that steers or hides',
    secrets: 'Secrets and exposure',
    links: 'Links',
    scan: 'The review itself',
  } satisfies Record<FindingGroup, string>,
  severity: { block: 'blocks', warn: 'caution', note: 'note' } satisfies Record<Severity, string>,
  counts: (block: number, warn: number, note: number) =>
    [
      block > 0 ? `${formatCount(block)} blocking` : null,
      warn > 0 ? plural(warn, 'caution', 'cautions') : null,
      note > 0 ? plural(note, 'note', 'notes') : null,
    ]
      .filter((each) => each !== null)
      .join(' · '),
  line: (line: number) => `line ${formatCount(line)}`,
  why: 'Why it matters',
  next: 'What to check next',
  open: 'Open in Files',
  lines: 'The line, with its neighbours',
  noLines: 'The lines are not shown: this file is kept secret, or has none.',
  files: 'Files that run code when an agent starts',
  filesHint: 'An acceptance is for exactly these contents.',
  agents: (names: string) => `Read by ${names}`,
  unreadable: 'not readable',
  malware: 'Malware scanner',
  note: 'Note for the receipt (optional)',
  accept: (found: number, blocking: number) =>
    `Accept ${found === 1 ? 'this finding' : `these ${formatCount(found)} findings`}${blocking > 0 ? `, ${formatCount(blocking)} of them blocking` : ''}`,
  acceptTitle: 'If you have looked at all of it',
  acceptBody:
    'Your answer is kept with a receipt, for exactly this folder, these findings and these files. It takes nothing off the list, and ends by itself when anything of it changes.',
  acceptedTitle: (by: 'operator' | 'cli', when: string) =>
    `Accepted ${by === 'operator' ? 'by you' : 'in a terminal'}, ${when}`,
  withdraw: 'Take it back',
  withdrawTitle: 'Take the acceptance back?',
  withdrawBody: 'Rules that allow pause, and agents that read what was found do not start, until it is accepted again.',
  receipt: 'Receipt of the acceptance',
  stale: 'An earlier acceptance does not count any more.',
  mended: 'Mended files are seen when you review again.',
  missing: 'This workspace is not known.',
  offline: 'The review is made by the bridge, which cannot be reached.',
  review: 'See the review',
  step: {
    caution: 'This folder’s review advises caution.',
    blocked: 'This folder’s review blocks agents.',
    waits: (files: number) =>
      `This agent reads ${plural(files, 'file', 'files')} here that can run code, and may not start before you accept.`,
    looking: 'Looking through the folder…',
  },
  menu: 'Trust review of this folder',
};
