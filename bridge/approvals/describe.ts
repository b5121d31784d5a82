/**
 * What an effect is that the bridge serves itself, made from a request, pure: the exact part that is hashed and the facts
 * a person sees. The rule not to break: the headline and every fact are the bridge's own. Called by the
 * conversations room through its `Describe`; `about` looks at files only through the walker handed in.
 */
import { Refusal } from '#protocol/errors.ts';
import type { CardDiff } from '#protocol/events.ts';
import { limits } from '#protocol/limits.ts';
import type { About, CurrentText, Described } from './contract.ts';
import { countChanges } from './diff.ts';
import { bytesOf, cut, factsOf, sha256, shown } from './facts.ts';
import { describePermission } from './permission.ts';
import { hasSecretShape, type RiskCode } from './risks.ts';
import { steeringName } from './shell/sheet.ts';

const secretName = /token|secret|passw|credential|api_?key|private_?key|auth|cookie/i;

/** A file write over ACP (F-05); `path` is relative. The diff is the bridge's own: it read the file. */
export const describeWrite = (
  write: { readonly path: string; readonly current: CurrentText | null; readonly content: string },
  about: About,
): Described => {
  const { path, current, content } = write;
  const contentSha256 = sha256(content);
  const oldText = current?.text ?? null;
  const diff: CardDiff = { path, source: 'bridge', oldText, newText: content, ...countChanges(oldText, content) };
  return {
    kind: 'file.write',
    effects: [{ type: 'write', path, contentSha256 }],
    detail: {
      path,
      contentSha256,
      bytes: bytesOf(content),
      // What it was before is part of this decision, but not of a rule to write the same again.
      base: current === null ? null : { revision: current.revision, sha256: current.sha256 },
    },
    facts: factsOf(
      {
        headline: `${current === null ? 'Create' : 'Write'} ${path}`,
        paths: [path],
        diffs: [diff],
        risks: [],
        payloadBytes: bytesOf(content),
      },
      about,
    ),
    words: {},
  };
};

const isSecretVariable = ({ name, value }: { readonly name: string; readonly value: string }): boolean =>
  secretName.test(name) || hasSecretShape(value);
const shownVariable = ({ name, value }: { readonly name: string; readonly value: string }): string =>
  isSecretVariable({ name, value }) ? `${name} (${String(value.length)} characters, hidden)` : `${name}=${value}`;

/**
 * A command over ACP (P-04), run without a shell. `cwd` is absolute.
 * @throws Refusal content_too_large when it could not be shown whole, bad_request when it is not text.
 */
export const describeCommand = (
  command: {
    readonly command: string;
    readonly args: readonly string[];
    readonly env: readonly { readonly name: string; readonly value: string }[];
    readonly cwd: string;
  },
  about: About,
): Described => {
  const argv = [command.command, ...command.args];
  const exact = JSON.stringify([argv, command.env]);
  if (exact.length > limits.eventBytes / 4 || argv.length > 1000 || command.env.length > 200)
    throw new Refusal('content_too_large');
  if (
    ![...argv, command.cwd, ...command.env.flatMap(({ name, value }) => [name, value])].every((part) =>
      part.isWellFormed(),
    )
  )
    throw new Refusal('bad_request');
  const variables = command.env.map(shownVariable);
  const risks: RiskCode[] = [];
  if (command.env.some(({ name }) => steeringName.test(name))) risks.push('environment');
  if (command.env.some(({ value }) => hasSecretShape(value))) risks.push('secret_shaped');
  if (variables.some((variable) => variable.length > 200)) risks.push('not_all_shown');
  return {
    kind: 'command',
    effects: [{ type: 'execute', argv, cwd: command.cwd }],
    detail: {
      argv,
      cwd: command.cwd,
      env: command.env.map(({ name, value }) =>
        isSecretVariable({ name, value }) ? { name, sha256: sha256(value) } : { name, value },
      ),
    },
    facts: factsOf(
      {
        headline: `Run ${shown(argv)}`,
        argv,
        cwd: command.cwd,
        env: variables.map((variable) => cut(variable, 200)),
        variables: command.env.map(({ name }) => name),
        paths: [command.cwd],
        diffs: [],
        risks,
        payloadBytes: bytesOf(exact),
      },
      about,
    ),
    words: {},
  };
};

/** The three, as the conversations room takes them. */
export const describe = { permission: describePermission, write: describeWrite, command: describeCommand } as const;
