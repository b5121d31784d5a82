/**
 * ACP fs and terminal calls → the host, which asks the operator and has the effect (G-25). Where they are not
 * advertised both are null and the connection refuses them.
 * Used by running.ts.
 */
import type { Serves } from './connection.ts';
import type { AgentHost } from './contract.ts';

const exitStatus = (exit: { code: number | null; signal: string | null }) => ({
  exitCode: exit.code,
  signal: exit.signal,
});

export const served = (host: AgentHost, advertised: boolean): Pick<Serves, 'files' | 'terminals'> => {
  if (!advertised) return { files: null, terminals: null };
  return {
    files: {
      read: async ({ path, line, limit }) => ({
        content: await host.readTextFile({
          path,
          ...(typeof line === 'number' ? { line } : {}),
          ...(typeof limit === 'number' ? { limit } : {}),
        }),
      }),
      write: ({ path, content }, signal) => host.writeTextFile({ path, content, signal }),
    },
    terminals: {
      create: ({ command, args, env, cwd, outputByteLimit }, signal) =>
        host.createTerminal({
          command,
          args: args ?? [],
          env: (env ?? []).map(({ name, value }) => ({ name, value })),
          ...(typeof cwd === 'string' ? { cwd } : {}),
          ...(typeof outputByteLimit === 'number' ? { outputByteLimit } : {}),
          signal,
        }),
      output: async ({ terminalId }) => {
        const { output, truncated, exit } = await host.terminalOutput(terminalId);
        return { output, truncated, exitStatus: exit === null ? null : exitStatus(exit) };
      },
      waitForExit: async ({ terminalId }) => exitStatus(await host.terminalExit(terminalId)),
      kill: ({ terminalId }) => host.killTerminal(terminalId),
      release: ({ terminalId }) => host.releaseTerminal(terminalId),
    },
  };
};
