import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { limits } from '#protocol/limits.ts';
import { makeRunGit } from '../../bridge/git/spawn.ts';
import {
  atEnd,
  codeOf,
  fill,
  idOf,
  linesOf,
  makeFolder,
  makeRepository,
  openRoom,
  plainEnv,
  repositoryAt,
  signal,
  type Repository,
  type Room,
} from './parts.ts';

/** Every way known to make git run something, each with a marker of its own. */
const plant = (repository: Repository): { marks: () => string[]; clear: () => void; kinds: number } => {
  const { path, base, git, write } = repository;
  const marksFolder = join(base, 'marks');
  const hooksFolder = join(base, 'hooks');
  for (const folder of [marksFolder, hooksFolder]) mkdirSync(folder);
  const mark = join(base, 'mark');
  writeFileSync(
    mark,
    `#!/bin/sh\ntouch '${marksFolder}'/"$1"\ncase "$1" in clean|smudge) cat;; textconv|include*) cat "$2";; process*) exit 1;; esac\n`,
  );
  chmodSync(mark, 0o755);
  const runs = (kind: string): string => `'${mark}' ${kind}`;

  write({
    '.gitattributes': [
      ...['*.clean filter=evil', '*.process filter=evilprocess', '*.conv diff=conv', '*.ext diff=ext'],
      ...['*.inc diff=inc', '*.incif diff=incif', '*.merge merge=evil', ''],
    ].join('\n'),
    'a.clean': 'one\n',
    'a.process': 'one\n',
    'a.conv': 'one\n',
    'a.ext': 'one\n',
    'a.inc': 'one\n',
    'a.incif': 'one\n',
    'a.merge': 'one\n',
    'plain.txt': 'one\n',
  });
  const module = join(base, 'module');
  mkdirSync(module);
  const inner = repositoryAt(module, base);
  inner.git('init', '-q', '--initial-branch=main');
  inner.commit('module', { inside: 'one\n' });
  git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', module, 'module');
  git('add', '-A');
  git('commit', '-q', '-m', 'first');
  // A signature, for log.showSignature to check by the repository's program.
  const signed = execFileSync('git', ['cat-file', 'commit', 'HEAD'], { cwd: path, env: plainEnv(base) })
    .toString('latin1')
    .replace('\n\n', '\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n AAAA\n -----END PGP SIGNATURE-----\n\n');
  const oid = spawnSync('git', ['hash-object', '-t', 'commit', '-w', '--stdin'], {
    cwd: path,
    env: plainEnv(base),
    input: signed,
  });
  git('update-ref', 'HEAD', oid.stdout.toString().trim());

  writeFileSync(join(base, 'included'), `[diff "inc"]\n\ttextconv = ${runs('include')}\n`);
  writeFileSync(join(base, 'includedif'), `[diff "incif"]\n\ttextconv = ${runs('includeif')}\n`);
  const config: readonly (readonly [string, string])[] = [
    ['core.fsmonitor', runs('fsmonitor')],
    ['core.sshCommand', runs('ssh')],
    ['core.pager', runs('pager')],
    ['pager.status', 'true'],
    ['core.editor', runs('editor')],
    ['sequence.editor', runs('sequence')],
    ['core.askPass', mark],
    ['core.gitProxy', runs('proxy')],
    ['core.alternateRefsCommand', runs('alternaterefs')],
    ['credential.helper', `!${runs('credential')}`],
    ['filter.evil.clean', runs('clean')],
    ['filter.evil.smudge', runs('smudge')],
    ['filter.evilprocess.process', runs('process')],
    ['diff.conv.textconv', runs('textconv')],
    ['diff.ext.command', runs('extdiff')],
    ['interactive.diffFilter', runs('difffilter')],
    ['merge.evil.driver', runs('merge')],
    ['alias.st', `!${runs('alias')}`],
    ['include.path', join(base, 'included')],
    ['includeIf.gitdir:/.path', join(base, 'includedif')],
    ['gpg.program', mark],
    ['log.showSignature', 'true'],
    ['trailer.x.command', runs('trailer')],
    ['uploadpack.packObjectsHook', runs('packobjects')],
    ['remote.origin.url', `ext::${mark} ext`],
    ['remote.origin.uploadpack', runs('uploadpack')],
    ['remote.origin.promisor', 'true'],
    ['protocol.ext.allow', 'always'],
    ['extensions.partialClone', 'origin'],
    ['core.repositoryFormatVersion', '1'],
    ['gc.auto', '1'],
  ];
  for (const [key, value] of config) git('config', key, value);
  git('-C', 'module', 'config', 'core.fsmonitor', runs('submodule'));
  const hooks = [
    'post-index-change',
    'pre-commit',
    'post-checkout',
    'reference-transaction',
    'fsmonitor-watchman',
    'pre-auto-gc',
  ];
  for (const hook of hooks) {
    for (const folder of [join(path, '.git/hooks'), hooksFolder]) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, hook), `#!/bin/sh\ntouch '${marksFolder}'/hook-${hook}\n`);
      chmodSync(join(folder, hook), 0o755);
    }
  }
  git('config', 'core.hooksPath', hooksFolder);

  for (const name of ['a.clean', 'a.process', 'a.conv', 'a.ext', 'a.inc', 'a.incif', 'a.merge', 'plain.txt'])
    writeFileSync(join(path, name), 'two\n');
  fill(path, { 'new.conv': 'untracked\n', 'module/inside': 'two\n' });
  const clear = (): void => {
    for (const name of readdirSync(marksFolder)) rmSync(join(marksFolder, name));
  };
  clear();
  return { marks: () => readdirSync(marksFolder).sort(), clear, kinds: config.length + hooks.length + 1 };
};

/** Everything the room can be asked for, of every entry. */
const askAll = async (room: Room): Promise<number> => {
  await room.status();
  const { commits } = await room.git.log(room.root, { workspaceId: room.root.workspaceId }, signal);
  const sources = [
    { kind: 'staged' as const },
    { kind: 'unstaged' as const },
    ...commits.map(({ commit }) => ({ kind: 'commit' as const, commit })),
  ];
  let asked = 0;
  for (const of of sources) {
    for (const entry of await room.changes(of)) {
      await codeOf(() => room.diff(of, entry.id, { large: true, context: 5 }));
      await codeOf(() => room.side(of, entry.id, 'old'));
      await codeOf(() => room.side(of, entry.id, 'new'));
      asked += 1;
    }
  }
  for (const { commit } of commits) {
    await room.git.show(room.root, { workspaceId: room.root.workspaceId, commit }, signal);
  }
  return asked;
};

const naive: readonly (readonly string[])[] = [
  ['status'],
  ['diff'],
  ['diff', '--cached'],
  ['diff', 'HEAD'],
  ['log', '-p'],
  ['show', 'HEAD'],
  ['diff', '--', 'a.ext'],
  ['ls-files', '--others'],
  // As for status, which itself looks in only where it cannot do without.
  ['-C', 'module', 'status'],
];
const naiveAll = (repository: Repository): void => {
  // A file that was merely touched, as after any build, makes git compare contents.
  utimesSync(join(repository.path, 'plain.txt'), new Date(), new Date());
  for (const args of naive)
    spawnSync('git', args, { cwd: repository.path, env: plainEnv(repository.base), timeout: 20_000 });
};

describe('T63 T64 a repository that makes git run programs', () => {
  test('fires none of them, while plain git fires them', async () => {
    const repository = makeRepository();
    const { marks, kinds } = plant(repository);
    expect(kinds).toBeGreaterThanOrEqual(20);
    const seen: string[] = [];
    const room = openRoom(repository.path, { seen: (args) => seen.push(args[0] ?? '') });
    expect(await askAll(room)).toBeGreaterThan(15);
    expect(new Set(seen)).toEqual(
      new Set(['config', 'status', 'check-attr', 'diff', 'diff-index', 'diff-tree', 'cat-file', 'log', 'ls-files']),
    );
    expect(marks()).toEqual([]);

    naiveAll(repository);
    const fired = marks();
    expect(fired.length).toBeGreaterThanOrEqual(6);
    expect(fired).toEqual(expect.arrayContaining(['fsmonitor', 'clean', 'extdiff', 'submodule']));
  });

  test('says of a filtered file that it was not compared, and names the filter', async () => {
    const repository = makeRepository();
    plant(repository);
    const room = openRoom(repository.path);
    const { content } = await room.diff({ kind: 'unstaged' }, idOf('a.clean'));
    expect(content).toEqual({ kind: 'filtered', filter: 'evil' });
    expect((await room.status()).notes.join(' ')).toContain('2 files go through a program of the repository');
    expect(linesOf(await room.diff({ kind: 'unstaged' }, idOf('a.conv')))).toEqual(['-one', '+two']);
  });

  test('leaves the repository, its index and its files as they were', async () => {
    const repository = makeRepository();
    plant(repository);
    const look = (): string =>
      execFileSync('find', ['.', '-type', 'f', '-printf', '%p %s %T@ %C@\n'], { cwd: repository.path }).toString();
    const before = look();
    await askAll(openRoom(repository.path));
    expect(look()).toBe(before);
  });
});

describe('T65 a git directory that leads elsewhere', () => {
  const victim = (base: string): Repository => {
    const path = join(base, 'victim');
    mkdirSync(path);
    const repository = repositoryAt(path, base);
    repository.git('init', '-q', '--initial-branch=main');
    repository.commit('theirs', { 'theirs.txt': 'not yours\n' });
    return repository;
  };
  const refused = async (path: string): Promise<string> => codeOf(() => openRoom(path).status());

  test('a file that points at a repository which does not know the folder is refused', async () => {
    const base = makeFolder();
    victim(base);
    fill(base, { 'evil/.git': 'gitdir: ../victim/.git\n' });
    expect(await refused(join(base, 'evil'))).toBe('unsupported_git_state');
  });

  test('a link is refused', async () => {
    const base = makeFolder();
    victim(base);
    mkdirSync(join(base, 'evil'));
    symlinkSync('../victim/.git', join(base, 'evil/.git'));
    expect(await refused(join(base, 'evil'))).toBe('unsupported_git_state');
  });

  test('links inside of it are refused: HEAD, index, objects, packs', async () => {
    for (const name of ['HEAD', 'index', 'objects', 'objects/pack']) {
      const repository = makeRepository();
      repository.commit('first', { a: '1\n' });
      const theirs = victim(repository.base);
      rmSync(join(repository.path, '.git', name), { recursive: true });
      symlinkSync(join(theirs.path, '.git', name), join(repository.path, '.git', name));
      expect([name, await refused(repository.path)]).toEqual([name, 'unsupported_git_state']);
    }
  });

  test('a linked work tree that is not registered is refused, a real one is read', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n' });
    repository.git('worktree', 'add', '-q', '-b', 'side', '../side');
    const side = join(repository.base, 'side');
    fill(side, { a: '2\n' });
    const status = await openRoom(side).status();
    expect(status).toMatchObject({ worktree: true, head: { kind: 'branch', name: 'side' } });
    expect(status.unstaged.map(({ name }) => name)).toEqual(['a']);

    fill(repository.base, { 'evil/.git': readFileSync(join(side, '.git')) });
    expect(await refused(join(repository.base, 'evil'))).toBe('unsupported_git_state');
  });

  test('a common directory of its own choice is refused', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n' });
    const theirs = victim(repository.base);
    writeFileSync(join(repository.path, '.git/commondir'), join(theirs.path, '.git'));
    expect(await refused(repository.path)).toBe('unsupported_git_state');
  });

  test('objects borrowed from outside are refused, from inside they are read', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n' });
    const theirs = victim(repository.base);
    const alternates = join(repository.path, '.git/objects/info/alternates');
    writeFileSync(alternates, `${join(theirs.path, '.git/objects')}\n`);
    expect(await refused(repository.path)).toBe('unsupported_git_state');
    mkdirSync(join(repository.path, '.git/more/objects/info'), { recursive: true });
    writeFileSync(alternates, '../more/objects\n');
    expect(await refused(repository.path)).toBe('done');
    writeFileSync(join(repository.path, '.git/more/objects/info/alternates'), `${join(theirs.path, '.git/objects')}\n`);
    expect(await refused(repository.path)).toBe('unsupported_git_state');
  });

  test('core.worktree is not followed, and said', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n' });
    repository.git('config', 'core.worktree', '/');
    const status = await openRoom(repository.path).status();
    expect(status).toMatchObject({ staged: [], unstaged: [] });
    expect(status.notes.join(' ')).toContain('another folder as its work tree');
  });

  test('a bare repository among the files is only files', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: '1\n' });
    repository.git('init', '-q', '--bare', 'bare');
    expect((await openRoom(repository.path).status()).unstaged.map(({ path }) => path)).toContain('bare/HEAD');
    expect(await refused(join(repository.path, 'bare'))).toBe('done'); // the repository above, limited to the folder
    const bare = makeFolder();
    execFileSync('git', ['init', '-q', '--bare', bare], { env: plainEnv(bare) });
    expect(await refused(bare)).toBe('not_git_repository');
  });

  test('a git directory in a folder of the bridge is refused', async () => {
    const base = makeFolder();
    const theirs = victim(base);
    fill(base, { 'evil/.git': `gitdir: ${theirs.path}/.git\n` });
    const room = openRoom(join(base, 'evil'), { privateDirectories: [theirs.path] });
    expect(await codeOf(() => room.status())).toBe('unsupported_git_state');
  });
});

describe('T66 a partial clone', () => {
  test('never asks the server for what is missing, while plain git connects', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: 'one\n', b: 'two\n' });
    const blob = repository.git('rev-parse', 'HEAD:a').trim();
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => void server.close());
    const { port } = server.address() as AddressInfo;
    for (const [key, value] of [
      ['core.repositoryFormatVersion', '1'],
      ['extensions.partialClone', 'origin'],
      ['remote.origin.promisor', 'true'],
      ['remote.origin.url', `git://127.0.0.1:${port}/x`],
    ] as const)
      repository.git('config', key, value);
    rmSync(join(repository.path, '.git/objects', blob.slice(0, 2), blob.slice(2)));
    repository.write({ a: 'changed\n' });

    const room = openRoom(repository.path);
    expect((await room.status()).notes.join(' ')).toContain('only on its server');
    expect(await codeOf(() => room.diff({ kind: 'unstaged' }, idOf('a')))).toBe('unsupported_git_state');
    expect(connections).toBe(0);
    // Not waited for by a blocking call: the server answers in this very process.
    const { spawn } = await import('node:child_process');
    await new Promise((resolve) =>
      spawn('git', ['diff'], { cwd: repository.path, env: plainEnv(repository.base), stdio: 'ignore' }).once(
        'exit',
        resolve,
      ),
    );
    expect(connections).toBeGreaterThan(0);
  });
});

describe('T67 what the bridge was started with', () => {
  test('no GIT_ variable reaches git', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: 'one\n' });
    repository.write({ a: 'two\n' });
    const trace = join(repository.base, 'trace');
    const given = {
      GIT_DIR: '/nonexistent',
      GIT_WORK_TREE: '/',
      GIT_INDEX_FILE: '/nonexistent/index',
      GIT_TRACE: trace,
      GIT_TRACE2: trace,
      GIT_EXTERNAL_DIFF: `touch ${trace}`,
      GIT_SSH_COMMAND: `touch ${trace}`,
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'core.fsmonitor',
      GIT_CONFIG_VALUE_0: `touch ${trace}`,
      GIT_CONFIG_PARAMETERS: "'core.fsmonitor'='false'",
    };
    Object.assign(process.env, given);
    atEnd(() => {
      for (const name of Object.keys(given)) Reflect.deleteProperty(process.env, name);
    });
    const room = openRoom(repository.path);
    expect((await room.status()).unstaged.map(({ name }) => name)).toEqual(['a']);
    expect(linesOf(await room.diff({ kind: 'unstaged' }, idOf('a')))).toEqual(['-one', '+two']);
    expect(existsSync(trace)).toBe(false);
    spawnSync('git', ['diff'], {
      cwd: repository.path,
      env: { ...process.env, GIT_DIR: join(repository.path, '.git'), GIT_WORK_TREE: repository.path },
    });
    expect(existsSync(trace)).toBe(true);
  });

  test('T70 git sees three descriptors, and an environment of a few names', () => {
    const base = makeFolder();
    const fake = join(base, 'git');
    writeFileSync(fake, `#!/bin/sh\nPATH=$PATH:/usr/bin:/bin\nenv\nexec ls -l /proc/self/fd\n`);
    chmodSync(fake, 0o755);
    // As in the bridge: what it was itself started with is closed once, before the first child.
    const room = (path: string): string => JSON.stringify(new URL(`../../bridge/${path}`, import.meta.url).href);
    const script = [
      `import { closeInherited } from ${room('agents/descriptors.ts')};`,
      `import { makeRunGit } from ${room('git/spawn.ts')};`,
      `import { openSync } from 'node:fs';`,
      `closeInherited([]);`,
      `openSync('/dev/null', 'r');`,
      `const run = makeRunGit({ program: ${JSON.stringify(fake)} });`,
      `const what = { gitDirectory: '/', workTree: null, args: [], signal: new AbortController().signal };`,
      `process.stdout.write((await run(what)).stdout);`,
    ].join('\n');
    const started = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    const lines = started.stdout.split('\n');
    const descriptors = lines.flatMap((line) => {
      const [, descriptor, target = ''] = / (\d+) -> (.*)$/.exec(line) ?? [];
      // The last is what the list is read with.
      return descriptor === undefined || /^\/proc\/\d+\/fd$/.test(target)
        ? []
        : [`${descriptor} ${target.split(':')[0]}`];
    });
    expect(descriptors).toEqual(['0 /dev/null', expect.stringMatching(/^1 /), expect.stringMatching(/^2 /)]);
    const names = lines.flatMap((line) => /^([A-Z_]+)=/.exec(line)?.[1] ?? []);
    expect(names.filter((name) => !name.startsWith('GIT_')).sort()).toEqual(['HOME', 'LC_ALL', 'PATH', 'PWD']);
  });
});

describe('T68 names', () => {
  const odd = [
    '-rf',
    '--output=x',
    ':(glob)*',
    'a b',
    "it's",
    '*',
    'a\\b',
    'back\n',
    '\u202egnp.exe',
    ' lead',
    'é'.normalize('NFD'),
  ];

  test('every name is listed and compared, whatever it looks like', async () => {
    const repository = makeRepository();
    repository.commit('first', Object.fromEntries(odd.map((name) => [name, 'one\n'])));
    for (const name of odd) writeFileSync(join(repository.path, name), 'two\n');
    const room = openRoom(repository.path);
    const entries = await room.changes({ kind: 'unstaged' });
    expect(entries.map(({ id }) => id).sort()).toEqual(odd.map((name) => idOf(name)).sort());
    for (const { id, name } of entries) {
      expect(name).not.toMatch(/[\p{Cc}\p{Cf}]/u);
      expect(linesOf(await room.diff({ kind: 'unstaged' }, id))).toEqual(['-one', '+two']);
    }
  });

  test('a name that is not UTF-8 is listed, compared where git holds both sides, and else refused by name', async () => {
    const repository = makeRepository();
    const name = Buffer.concat([Buffer.from('b\xe9-'), Buffer.from([0xff, 0xfe])]);
    const file = Buffer.concat([Buffer.from(`${repository.path}/`), name]);
    writeFileSync(file, 'one\n');
    const first = repository.commit('first');
    writeFileSync(file, 'two\n');
    const second = repository.commit('second');
    writeFileSync(file, 'three\n');
    const room = openRoom(repository.path);
    const [entry] = await room.changes({ kind: 'unstaged' });
    expect(entry).toMatchObject({ id: idOf(name), path: null });
    expect(entry?.name).toContain('\\xff\\xfe');
    expect(linesOf(await room.diff({ kind: 'commit', commit: second }, idOf(name)))).toEqual(['-one', '+two']);
    expect(linesOf(await room.diff({ kind: 'commit', commit: first }, idOf(name)))).toEqual(['+one']);
    expect(await codeOf(() => room.diff({ kind: 'unstaged' }, idOf(name)))).toBe('unsupported_filename_encoding');
  });

  test('an id that is no relative path is refused before git sees it', async () => {
    const repository = makeRepository();
    repository.commit('first', { a: 'one\n' });
    const room = openRoom(repository.path);
    for (const path of ['', '/etc/passwd', '../x', 'a/../../x', 'a//b', './a', 'a/', 'a\0b'])
      expect(await codeOf(() => room.diff({ kind: 'staged' }, idOf(path)))).toBe('bad_request');
    expect(await codeOf(() => room.diff({ kind: 'staged' }, 'not base64!'))).toBe('bad_request');
    expect(await codeOf(() => room.git.log(room.root, { workspaceId: '', path: '../x' }, signal))).toBe('invalid_path');
  });
});

describe('T69 bounds', () => {
  test('a list over its limit is refused as a whole', async () => {
    const repository = makeRepository();
    const blob = execFileSync('git', ['hash-object', '-w', '--stdin'], {
      cwd: repository.path,
      env: plainEnv(repository.base),
      input: 'x',
    })
      .toString()
      .trim();
    const index = Array.from({ length: 100_000 }, (_, at) => `100644 ${blob}\tfolder/${at}\n`).join('');
    execFileSync('git', ['update-index', '--index-info'], {
      cwd: repository.path,
      env: plainEnv(repository.base),
      input: index,
    });
    const room = openRoom(repository.path);
    expect(await codeOf(() => room.status())).toBe('git_output_too_large');
    expect(await codeOf(() => room.changes({ kind: 'staged' }))).toBe('git_output_too_large');
  });

  test('an object larger than is looked at is named with its size, and not read', async () => {
    const repository = makeRepository();
    const first = repository.commit('first', { big: Buffer.alloc(limits.scanBytes + 1, `${'a'.repeat(9999)}\n`) });
    const room = openRoom(repository.path);
    const { content } = await room.diff({ kind: 'commit', commit: first }, idOf('big'));
    expect(content).toEqual({ kind: 'large', lines: 0, bytes: limits.scanBytes + 1 });
    expect(await codeOf(() => room.side({ kind: 'commit', commit: first }, idOf('big'), 'new'))).toBe(
      'content_too_large',
    );
    expect(await codeOf(() => room.diff({ kind: 'commit', commit: first }, idOf('big'), { large: true }))).toBe(
      'content_too_large',
    );
  });

  const fake = (script: string): { run: ReturnType<typeof makeRunGit>; base: string } => {
    const base = makeFolder();
    writeFileSync(join(base, 'git'), `#!/bin/sh\nPATH=/usr/bin:/bin\n${script}\n`);
    chmodSync(join(base, 'git'), 0o755);
    return { run: makeRunGit({ program: join(base, 'git') }), base };
  };
  const isAlive = (pid: number): boolean => {
    try {
      process.kill(pid, 0);
      return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
    } catch {
      return false;
    }
  };

  test('one that takes too long is ended with all that it started', async () => {
    const { run, base } = fake('sleep 1000 & echo $! > "$GIT_DIR/child"; wait');
    const what = { gitDirectory: base, workTree: null, args: [], signal };
    expect(await codeOf(() => run({ ...what, timeoutMs: 300 }))).toBe('git_timeout');
    const child = Number(readFileSync(join(base, 'child'), 'utf8'));
    await expect.poll(() => isAlive(child)).toBe(false);
  });

  test('one that prints without end is ended, and so is one whose asker went away', async () => {
    const { run, base } = fake('yes');
    const what = { gitDirectory: base, workTree: null, args: [], signal };
    expect(await codeOf(() => run(what))).toBe('git_output_too_large');
    const gone = new AbortController();
    const asked = codeOf(() => fake('sleep 1000').run({ ...what, signal: gone.signal }));
    gone.abort();
    expect(await asked).toBe('cancelled');
  });

  test('only so many run at once', async () => {
    const { run, base } = fake(
      'touch "$GIT_DIR/run-$$"; ls "$GIT_DIR" | grep -c run-; sleep 0.2; rm "$GIT_DIR/run-$$"',
    );
    const all = await Promise.all(
      Array.from({ length: limits.gitProcesses * 2 }, () =>
        run({ gitDirectory: base, workTree: null, args: [], signal }),
      ),
    );
    const counts = all.map(({ stdout }) => Number(stdout.toString()));
    expect(Math.max(...counts)).toBeLessThanOrEqual(limits.gitProcesses);
  });

  test('without git it is said', async () => {
    const run = makeRunGit({ program: null });
    expect(await codeOf(() => run({ gitDirectory: '/', workTree: null, args: [], signal }))).toBe('git_unavailable');
    const missing = makeRunGit({ program: '/nonexistent/git' });
    expect(await codeOf(() => missing({ gitDirectory: '/', workTree: null, args: [], signal }))).toBe(
      'git_unavailable',
    );
  });
});
