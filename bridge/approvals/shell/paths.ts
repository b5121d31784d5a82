/**
 * The paths a command names: operands, values of options, and options that move the target. The rule not to
 * break: what may be a path is listed where it would matter; one too many is better than one too few. Pure.
 */
import { posix } from 'node:path';
import { installOf } from './installs.ts';
import { word, wordSet, type Scope, type Sheet, type Word } from './sheet.ts';

/** Every operand of these is a path. */
const filePrograms = wordSet(
  'cat head tail less more rm rmdir mv cp ln touch mkdir chmod chown chgrp ls stat file wc tee truncate shred install ' +
    'unlink realpath readlink du diff cmp sort uniq cut nl od xxd hexdump strings sha1sum sha256sum sha512sum md5sum ' +
    'source . cd pushd zip unzip gzip gunzip zcat bzip2 xz tac rev base64 patch open xdg-open code vim vi nano emacs tree trash rimraf',
);
/** The first operand of these is a pattern or a program of their own, unless an option gives it. */
const patternFirst = wordSet('grep egrep fgrep zgrep rg ag ack sed gsed awk gawk mawk nawk jq yq perl');
const textPrograms = wordSet(
  'echo printf true false : test [ expr seq yes sleep kill export unset set alias type hash',
);
/** Options that move the target: the letters and names whose value is a directory. `base` ones move relative paths, too. */
const movers: Readonly<Record<string, { readonly base?: RegExp; readonly other?: RegExp }>> = {
  git: { base: /^-C$/, other: /^--(git-dir|work-tree)$/ },
  make: { base: /^(-[a-zA-Z]*C|--directory)$/ },
  gmake: { base: /^(-[a-zA-Z]*C|--directory)$/ },
  ninja: { base: /^-C$/ },
  npm: { base: /^(-C|--prefix)$/, other: /^--(cache[a-z-]*|userconfig|globalconfig)$/ },
  pnpm: { base: /^(-C|--dir|--prefix)$/, other: /^--(store-dir|cache[a-z-]*|global-dir)$/ },
  yarn: { base: /^--cwd$/, other: /^--(cache[a-z-]*|global-folder|modules-folder|prefix)$/ },
  bun: { base: /^--cwd$/, other: /^--cache[a-z-]*$/ },
  pip: { other: /^(-t|--(target|prefix|root|cache-dir|src))$/ },
  uv: { base: /^(--directory|--project)$/, other: /^(--(target|prefix|cache-dir))$/ },
  cargo: { base: /^-C$/, other: /^--(manifest-path|target-dir|root)$/ },
  go: { base: /^-C$/, other: /^-o$/ },
  composer: { base: /^(-d|--working-dir)$/ },
  tar: { base: /^(-[a-zA-Z]*C|--directory)$/ },
  unzip: { other: /^-d$/ },
  cp: { other: /^(-[a-zA-Z]*t|--target-directory)$/ },
  mv: { other: /^(-[a-zA-Z]*t|--target-directory)$/ },
  ln: { other: /^(-[a-zA-Z]*t|--target-directory)$/ },
  install: { other: /^(-[a-zA-Z]*t|--target-directory)$/ },
  curl: { other: /^(-[a-zA-Z#]*o|--output|--output-dir)$/ },
  wget: { other: /^(-[a-zA-Z]*[OP]|--output-document|--directory-prefix)$/ },
  cmake: { other: /^(-[BS]|--install-prefix|--prefix|--build|--install)$/ },
  docker: { other: /^(-v|--volume|--mount)$/ },
};

/** Values of options like `-C dir`, `-Cdir`, `--dir=dir`, `--dir dir`. */
export const valuesOf = (args: readonly Word[], names: RegExp | undefined): Word[] =>
  names === undefined
    ? []
    : args.flatMap((arg, index) => {
        const text = arg.value ?? arg.source;
        const next = args[index + 1];
        if (names.test(text)) return next === undefined ? [] : [next];
        const named = /^(--?[a-z][\w-]*)=/.exec(text)?.[1];
        if (named !== undefined && names.test(named)) return [part(arg, named.length + 1)];
        return /^-[A-Za-z]./.test(text) && !text.startsWith('--') && names.test(text.slice(0, 2)) ? [part(arg, 2)] : [];
      });

const part = ({ value, source }: Word, from: number): Word => ({
  value: value === null ? null : value.slice(from),
  source: source.slice(from),
});

const remoteNames = wordSet('gh glab hub docker podman kubectl helm aws gcloud az rclone');
const isBareName = (text: string): boolean => !/^[~/.$]|\.[a-z]\w{0,4}$/i.test(text);
const looksLikePath = (text: string): boolean =>
  /^(~|\/|\.{1,2}(\/|$)|\$\{?\w+\}?\/)/.test(text) || (text.includes('/') && !/\s/.test(text));

/** Parts of an argument that may be paths: all of it, after `=`, `@` or `:`, and behind an option's letter. */
const pathParts = (arg: Word): Word[] => {
  const text = arg.value ?? arg.source;
  if (/[a-z]:\/\//i.test(text)) {
    const file = /^(?:.*[=@])?file:\/\/(?:localhost)?(\/.*)$/i.exec(text)?.[1];
    return file === undefined ? [] : [word(file)];
  }
  if (/^[\w.-]+@[\w.-]+:/.test(text)) return [];
  if (arg.value === null) return [part(arg, /^-{1,2}[\w-]+=/.exec(text)?.[0].length ?? 0)];
  const [, ...behind] = text.split(/[=:,]/);
  const isSplit = /^(-|@|\w+=|[^:]+:[/.~])/.test(text);
  const pieces = [
    isSplit ? text.replace(/^(-[A-Za-z](?=[/~.])|@)/, '') : text,
    ...behind,
    ...(isSplit ? [text.split(':')[0] ?? ''] : []),
  ];
  return [...new Set(pieces)]
    .filter((piece) => piece !== '' && !/^[-+@]/.test(piece) && !/^([^:]+:[/.~]|\w+=)/.test(piece))
    .map(word);
};

/** Arguments that may be paths: not a pattern, and of `find` not its expression. */
const operandsOf = (name: string, args: readonly Word[]): readonly Word[] => {
  if (name === 'find') {
    const end = args.findIndex(
      ({ value }) => value !== null && /^([-(!]|,$)/.test(value) && !/^-([HLPD]|O\d)$/.test(value),
    );
    const named = args.filter((_arg, index) =>
      /^-(newer\w*|samefile|files0-from|fprint\w*|fls)$/.test(args[index - 1]?.value ?? ''),
    );
    return [...args.slice(0, end === -1 ? undefined : end), ...named];
  }
  if (!patternFirst.has(name)) return args;
  const isOption = (arg: Word | undefined): boolean => arg?.value?.startsWith('-') === true;
  const isGiven = args.some(({ value }) => /^(-[a-zA-Z]*[ef]|--(regexp|file|expression))/.test(value ?? ''));
  const rest = args.filter(
    (_arg, index) => !/^(-[a-zA-Z]*e|--regexp|--expression)$/.test(args[index - 1]?.value ?? ''),
  );
  const first = isGiven ? -1 : rest.findIndex((arg) => !isOption(arg));
  return rest.filter((_arg, index) => index !== first);
};

const noteOperands = (sheet: Sheet, name: string, args: readonly Word[], scope: Scope): void => {
  // What ssh is given is run on the other machine.
  if (textPrograms.has(name) || name === 'ssh') return;
  const isFiles = filePrograms.has(name) || name === 'find';
  // A slash alone does not make a path of a branch, a package or a resource.
  const isNamed = name === 'git' || remoteNames.has(name) || installOf(name, args) !== null;
  for (const arg of operandsOf(name, args))
    for (const piece of pathParts(arg)) {
      const text = (piece.value ?? piece.source).replace(/\/\.\.\.$/, '/');
      const isOperand = isFiles && piece.source === arg.source && !/^(-|\d+$|…$)/.test(text);
      if (
        isOperand ||
        (looksLikePath(text) && !(isNamed && isBareName(text))) ||
        (patternFirst.has(name) && /^[\w-]+\.\w+$/.test(text))
      )
        sheet.path(piece, scope);
      // Without a slash a word may be a file all the same; it is listed where that would matter.
      else if (/^(secret|agent_config)$/.test(sheet.placeOf(piece, scope))) sheet.path(piece, scope);
    }
};

/** The side of a mount that is on this machine. */
const mounted = ({ value, source }: Word): Word => ({
  value: value?.split(':')[0] ?? null,
  source: source.split(':')[0] ?? '',
});

/** Lists the paths among the arguments; options that move the target move the relative ones, too. */
export const notePaths = (sheet: Sheet, name: string, args: readonly Word[], scope: Scope): void => {
  const mover = movers[/^pip[23]?$/.test(name) ? 'pip' : name === 'podman' ? 'docker' : name];
  const bases = valuesOf(args, mover?.base);
  for (const target of [...bases, ...valuesOf(args, mover?.other)])
    if (sheet.path(name === 'docker' || name === 'podman' ? mounted(target) : target, scope) !== 'inside')
      sheet.notes.add('moves_target');
  const cwds = bases.reduce(
    (from: readonly (string | null)[], { value }) =>
      from.map((cwd) => (value === null || cwd === null ? null : posix.resolve(cwd, value))),
    scope.cwds,
  );
  const moving = [mover?.base, mover?.other].filter((names) => names !== undefined);
  const others = args.filter(({ value }, index) => {
    const [before, own] = [args[index - 1]?.value ?? '', /^--?[\w-]+(?==)/.exec(value ?? '')?.[0] ?? ''];
    return !moving.some((names) => names.test(before) || names.test(own));
  });
  noteOperands(sheet, name, others, { ...scope, cwds });
};

/** A file that is run: where it lies matters. */
export const noteScript = (sheet: Sheet, file: Word, scope: Scope): void => {
  const place = sheet.path(file, scope);
  if (place !== 'outside' && place !== 'unknown') sheet.notes.add('program_in_workspace');
};
