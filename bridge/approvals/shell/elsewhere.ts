/** Trampolines to another machine or a container: their inner commands name nothing of ours. Pure. */
import { blind, line, subcommands, unclear, type Inner, type Trampoline } from './inner.ts';
import { split } from './options.ts';

export const ssh: Trampoline = (args, name) => {
  const found = split(args, { flags: '1246AaCfGgKkMNnqsTtVvXxYy', values: 'BbcDEeFIiJLlmOopQRSWw' });
  if (found === null) return unclear(name);
  const local = found.options
    .filter(
      ({ name: letter, value }) =>
        letter === 'F' || (letter === 'o' && /command|include|match|pkcs11/i.test(value?.value ?? '')),
    )
    .map(() => blind('An option of ssh can run a program on this machine.'));
  const destination = found.rest[0]?.value;
  if (destination === undefined || destination === null) return [...unclear(name), ...local];
  // Behind the destination options may go on.
  const remote = split(found.rest.slice(1), { flags: '46AaCfGgKkMNnqsTtVvXxYy', values: 'bcDEeFIiJLlmOopQRSWw' });
  if (remote === null) return [...unclear(name), ...local];
  const host = destination
    .replace(/^ssh:\/\//, '')
    .replace(/^[^@]*@/, '')
    .replace(/(?<=[^:]):\d+$/, '');
  const inner: Inner[] =
    remote.rest.length === 0 ? [] : [{ is: 'text', text: line(remote.rest), dialect: 'posix', elsewhere: true }];
  return [{ is: 'self' }, { is: 'host', name: host }, ...local, ...inner];
};

const container =
  (values: string, longFlags: string, longValues: string): Trampoline =>
  (args, name) => {
    const found = split(args, { flags: 'ditPTq', values, longFlags, longValues });
    if (found === null || typeof found.rest[0]?.value !== 'string') return unclear(name);
    const words = found.rest.slice(1);
    return [{ is: 'self' }, ...(words.length === 0 ? [] : [{ is: 'argv', words, elsewhere: true } as const])];
  };
const exec = container(
  'euwn',
  'detach interactive tty privileged no-TTY',
  'env user workdir env-file index container namespace',
);
const run = container(
  'aceghlmpuvw',
  'detach interactive tty rm init privileged publish-all read-only no-TTY no-deps build quiet',
  'name env env-file user workdir volume mount publish network net entrypoint memory cpus platform pull label hostname add-host device cap-add cap-drop security-opt shm-size tmpfs userns ulimit gpus',
);
export const docker = subcommands({
  ...{ exec, run, 'container exec': exec, 'container run': run, 'compose exec': exec, 'compose run': run },
});
export const kubectl = subcommands({
  exec: (args, name) => {
    const at = args.findIndex(({ value }) => value === '--');
    return at === -1 ? unclear(name) : [{ is: 'self' }, { is: 'argv', words: args.slice(at + 1), elsewhere: true }];
  },
});
