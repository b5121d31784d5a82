/** Programs that run code in a language that is not read here, or a package fetched for the purpose. Pure. */
import { blind, self, unclear, type Inner, type Trampoline } from './inner.ts';
import { split, valueOf, type Grammar } from './options.ts';

/** `npx`, `pnpm dlx`, `uvx` …: a package from a registry, run at once. */
const fetched =
  (grammar: Grammar): Trampoline =>
  (args, name) => {
    const found = split(args, grammar);
    if (found === null) return unclear(name);
    const packages = found.options
      .filter((option) => ['p', 'package', 'from', 'with', 'spec'].includes(option.name))
      .map((option): Inner => ({ is: 'fetch', package: option.value?.value ?? '' }));
    const text = valueOf(found.options, 'c', 'call');
    if (text !== undefined) return [...packages, { is: 'text', text, dialect: 'posix' }];
    const [first] = found.rest;
    if (first === undefined) return self;
    if (first.value === null) return unclear(name);
    return [
      ...(packages.length > 0 ? packages : [{ is: 'fetch', package: first.value } as const]),
      { is: 'argv', words: found.rest },
    ];
  };
export const npx = fetched({
  flags: 'yq',
  values: 'pc',
  longFlags: 'yes no no-install quiet silent ignore-scripts workspaces prefer-offline offline bun',
  longValues: 'package call registry prefix cache userconfig workspace',
});
export const uvx = fetched({
  flags: 'qv',
  values: 'p',
  longFlags: 'isolated offline quiet no-cache',
  longValues: 'from with python spec',
});

/** A language that is not read here: its code, wherever one of these options gives it. */
export const language =
  (name: string, code: RegExp): Trampoline =>
  (args) => {
    const first = args.findIndex(
      ({ value }) => value === null || !value.startsWith('-') || value === '-' || value === '--',
    );
    // Behind an option that may have a value it is not certain which word is the file.
    const options = first === 0 ? [] : args;
    if (options.some(({ value }) => value !== null && code.test(value)))
      return [{ is: 'self' }, blind(`${name} code on the command line is not read.`)];
    if (first === -1 || args[first]?.value === '-')
      return args.some(({ value }) => /^(-V|-v|-h|--version|--help|--test)$/.test(value ?? ''))
        ? self
        : [{ is: 'self' }, blind(`${name} reads its code from its input or from options.`)];
    return args[first]?.value === null
      ? [{ is: 'self' }, blind(`Which ${name} code runs is only known when it runs.`)]
      : self;
  };
export const python: Trampoline = (args, name) => {
  const at = args.findIndex(({ value }) => value === null || !/^-[bBdEiIOqsSuvxPm]+$/.test(value));
  const isModule = args.slice(0, at === -1 ? undefined : at).some(({ value }) => value?.endsWith('m') === true);
  const module = args[at]?.value;
  if (isModule && typeof module === 'string')
    return /^(pip|pipx|uv|poetry)$/.test(module) ? [{ is: 'argv', words: args.slice(at) }] : self;
  return language('Python', /^-[a-zA-Z]*c/)(args, name);
};
export const node = language(
  'JavaScript',
  /^(-[a-z]*[epr]|--(eval|print|require|import|loader|experimental-loader|env-file)(=|$))/,
);
