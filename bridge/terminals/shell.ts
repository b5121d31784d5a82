/**
 * Which shell a terminal runs and what it knows (P-01): the operator's own, in the operator's home, with an environment
 * chosen name by name, from which names that look like secrets are left out. Pure but for a look at the shell's file.
 * Used by `terminals.ts`.
 */
import { accessSync, constants } from 'node:fs';
import { isAbsolute } from 'node:path';
import { commonEnv } from '../agents/catalogue.ts';
import { looksSecret, matches } from '../agents/environment.ts';
import { terminalMarkerName } from '../agents/procfs.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Beside what agents get: what a person's tools look for. */
const personal: readonly string[] = [
  ...['EDITOR', 'VISUAL', 'PAGER', 'BROWSER', 'LESS', 'LS_COLORS', 'MANPATH', 'INFOPATH'],
  ...['SSH_AUTH_SOCK', 'SSH_AGENT_PID', 'GPG_AGENT_INFO', 'DISPLAY', 'WAYLAND_DISPLAY', 'DBUS_SESSION_BUS_ADDRESS'],
  ...['NVM_*', 'PYENV_*', 'RBENV_*', 'VOLTA_*', 'PNPM_HOME', 'GOPATH', 'GOROOT', 'CARGO_HOME', 'RUSTUP_HOME'],
  ...['JAVA_HOME', 'ANDROID_HOME', 'HOMEBREW_*', 'NIX_*'],
];

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // the next one is tried
  }
};

/** Absolute path of the shell, or null where there is none. */
export const shellOf = (env: Environment): string | null =>
  [env['SHELL'] ?? '', '/bin/bash', '/bin/sh'].find((path) => isAbsolute(path) && isProgram(path)) ?? null;

export const shellEnvironment = (env: Environment, marker: string): Record<string, string> => {
  const allowed = [...commonEnv, ...personal];
  const chosen = Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && !looksSecret.test(name) && allowed.some((pattern) => matches(name, pattern))
      ? [[name, value] as const]
      : [],
  );
  return {
    LANG: 'C.UTF-8',
    ...Object.fromEntries(chosen),
    TERM: 'xterm-256color',
    COLORTERM: 'truecolor',
    TERM_PROGRAM: 'countersign',
    [terminalMarkerName]: marker,
  };
};
