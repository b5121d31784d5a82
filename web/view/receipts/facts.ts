/** What a verified statement says, as rows for people. Pure; nothing here comes from the bridge. */
import type { Statement } from '#protocol/receipts.ts';
import { formatBytes, formatDuration, formatExact, visible } from '#lib/text/format.ts';
import { words } from '#lib/text/receipts.en.ts';

export interface Fact {
  readonly name: string;
  readonly value: string;
  /** Shown in code type, to be compared sign by sign. */
  readonly exact?: boolean;
}

const emptySha256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const row = (name: string, value: string | null, exact = false): Fact[] =>
  value === null || value === '' ? [] : [{ name, value: visible(value), ...(exact ? { exact } : {}) }];

export const factsOf = ({ subject, predicate }: Statement): readonly Fact[] => {
  const { receipt, request, agent, workspace, policy, decision, outcome, session, bridge } = predicate;
  const { field } = words;
  const decided =
    decision === null
      ? null
      : words.decidedBy(decision.value, decision.by, decision.option) +
        (decision.remembered ? `, ${words.remembered}` : '');
  return [
    ...row(field.number, words.number(receipt.seq)),
    ...row(field.kind, words.kind[receipt.kind]),
    ...row(field.at, formatExact(receipt.at)),
    ...row(field.decision, decided),
    ...row(field.note, decision !== null && decision.noteSha256 !== emptySha256 ? words.withNote : null),
    ...row(field.outcome, outcome === null ? null : words.outcome[outcome.value]),
    ...row(field.took, outcome === null ? null : formatDuration(Math.max(0, outcome.endedAt - outcome.startedAt))),
    ...row(field.rules, policy === null ? null : words.rules(policy.version, policy.rule)),
    ...row(field.agent, agent === null ? null : `${agent.name} ${agent.version}`),
    ...row(field.model, agent?.model ?? null),
    ...row(field.level, agent === null ? null : words.level[agent.enforcement]),
    ...row(field.head, workspace?.gitHead ?? null, true),
    ...row(
      field.action,
      `sha256 ${subject[0]?.digest.sha256 ?? ''}${request === null ? '' : `, ${formatBytes(request.size)}`}`,
      true,
    ),
    ...row(field.session, session?.keyId ?? decision?.proof.keyId ?? null, true),
    ...row(field.previous, receipt.previous === null ? null : `sha256 ${receipt.previous.sha256}`, true),
    ...row(field.log, receipt.origin, true),
    ...row(field.bridge, bridge.version),
    ...row(field.clock, bridge.clock === 'stepped' ? words.clock.stepped : null),
  ];
};
