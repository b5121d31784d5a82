/**
 * The practice agent's whole understanding: a handful of requests about the practice workspace, told apart by a few
 * words. It acts on what it finds (files, test output, exit codes), never on what it expects, and says so when it is
 * stopped by a no. Used by agent.ts; the first match in `requests` wins.
 */
import { Refused, type Ran, type Voice } from './voice.ts';

interface Request {
  readonly name: string;
  readonly matches: RegExp;
  act(voice: Voice, prompt: string, before: readonly string[]): Promise<void>;
}

export const greeting =
  'I am the practice agent: a script that comes with Countersign. I need no account and no network, and I only understand a few requests. What I do is real, though: my files and commands go through the bridge, and it asks you first.\n\n';

const sources = ['src/dates.js', 'src/slug.js', 'src/index.js'] as const;
const tests = ['test/dates.test.js', 'test/slug.test.js'] as const;

const abilities = [
  'explain the code',
  'run the tests',
  'find and fix the failing test',
  'rename a function, for example “rename slugify to toSlug”',
  'make a plan',
  'count to 200 slowly, to watch a stream or to interrupt one',
  'note something, for example “note: water the plants”',
  'clean up with one long command, to see what a card makes of it',
  'delete everything, to see a request you should deny',
];
const whatICan = (): string =>
  `I can do these, in the practice workspace:\n\n${abilities.map((ability) => `- ${ability}`).join('\n')}\n`;

/** Names of failing tests, as the reporters `tap` and `spec` print them. */
const failingTests = (output: string): string[] => {
  const plain = output.replace(/\u001b\[[0-9;]*m/g, '');
  const names = [...plain.matchAll(/^\s*(?:not ok \d+ - |✖ )(.+?)(?: \([\d.]+ms\))?$/gm)].map(
    (match) => match[1] ?? '',
  );
  return [...new Set(names)].filter((name) => !name.endsWith('.js') && name !== 'failing tests:');
};

const runTests = (voice: Voice): Promise<Ran> => voice.run('node', ['--test']);

const tellTests = async (voice: Voice, ran: Ran): Promise<void> => {
  if (ran.exitCode === 0) return voice.say('All tests pass.\n');
  const failing = failingTests(ran.output);
  if (failing.length === 0)
    return voice.say(
      `The tests ended with exit code ${ran.exitCode ?? 'unknown'}; I could not tell from the output which of them failed.\n`,
    );
  await voice.say(
    `${failing.length === 1 ? 'One test fails' : `${failing.length} tests fail`}:\n\n${failing.map((name) => `- ${name}`).join('\n')}\n`,
  );
};

const notHere = (voice: Voice, path: string): Promise<void> =>
  voice.say(
    `There is no \`${path}\` here, so this is not the practice workspace as I know it. I only know my way around there.\n`,
  );

const explain = async (voice: Voice): Promise<void> => {
  await voice.think('I read the sources before I say anything about them.');
  const texts: string[] = [];
  for (const path of sources) {
    const text = await voice.read(path);
    if (text === null) return notHere(voice, path);
    texts.push(text);
  }
  const exported = [...texts.join('\n').matchAll(/\/\*\* ([^\n]*?)\s*\*\/\nexport function (\w+)/g)];
  await voice.say('This is **daybook**, a small library for a diary. ');
  await voice.say(`It has ${exported.length} functions in ${sources.length} files:\n\n`);
  await voice.say(
    `| function | what it does |\n| --- | --- |\n${exported.map(([, about, name]) => `| \`${name}\` | ${about} |`).join('\n')}\n\n`,
  );
  await voice.say(
    '`src/index.js` puts the other two together: `entryName` takes a day and a title and makes the file name of an entry. Dates are plain objects, so nothing depends on a time zone.\n\n',
  );
  await voice.say('A good next step is “find and fix the failing test”.\n');
};

const bug = 'return year % 4 === 0 && year % 100 !== 0;';
const mended = 'return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;';
const fixSteps = ['Run the tests', 'Find the cause', 'Fix it', 'Run the tests again'];

const fix = async (voice: Voice): Promise<void> => {
  await voice.plan(fixSteps, 0);
  await voice.say('I run the tests first, to see what really fails.\n');
  const before = await runTests(voice);
  await tellTests(voice, before);
  if (before.exitCode === 0) {
    await voice.plan(fixSteps, fixSteps.length);
    return voice.say('There is nothing to fix.\n');
  }
  await voice.plan(fixSteps, 1);
  await voice.think(
    'The failing test is about February 2000. daysInMonth asks isLeapYear, so I look at that, and at what the test expects.',
  );
  const path = sources[0];
  const [source, test] = [await voice.read(path), await voice.read(tests[0])];
  if (source === null) return notHere(voice, path);
  if (test === null) return notHere(voice, tests[0]);
  if (!source.includes(bug))
    return voice.say('The cause is not the one I know how to mend, so I leave the code as it is.\n');
  await voice.say(
    '\nThe cause is in `isLeapYear`: it knows that centuries are not leap years, but not that every fourth century is one again. The year 2000 had a 29th of February.\n\n',
  );
  await voice.say(`\`\`\`diff\n-  ${bug}\n+  ${mended}\n\`\`\`\n\nI write that one line.\n`);
  await voice.plan(fixSteps, 2);
  await voice.write(path, source, source.replace(bug, mended));
  await voice.plan(fixSteps, 3);
  const after = await runTests(voice);
  await tellTests(voice, after);
  if (after.exitCode !== 0) return voice.say('So my change was not enough.\n');
  await voice.plan(fixSteps, fixSteps.length);
  await voice.say(`\nThe cause was one line in \`${path}\`. You can see the change and its receipt above.\n`);
};

const renameFunction = async (voice: Voice, prompt: string): Promise<void> => {
  const named =
    /rename\s+(?:the\s+)?(?:function\s+)?[`"“]?([A-Za-z_$][\w$]*)[`"”]?\s+(?:to|into|as)\s+[`"“]?([A-Za-z_$][\w$]*)/i.exec(
      prompt,
    );
  const [from, to] = named === null ? ['slugify', 'toSlug'] : [named[1] as string, named[2] as string];
  if (named === null) await voice.say(`You did not say which, so I take \`${from}\` → \`${to}\`.\n`);
  const word = new RegExp(`(?<![\\w$])${from.replaceAll('$', '\\$')}(?![\\w$])`, 'g');
  const changes: { path: string; text: string; renamed: string }[] = [];
  for (const path of [...sources, ...tests]) {
    const text = await voice.read(path);
    if (text === null) return notHere(voice, path);
    const renamed = text.replace(word, () => to);
    if (renamed !== text) changes.push({ path, text, renamed });
  }
  if (changes.length === 0) return voice.say(`Nothing here is called \`${from}\`.\n`);
  await voice.say(
    `\`${from}\` is named in ${changes.length} ${changes.length === 1 ? 'file' : 'files'}. I write them one by one.\n`,
  );
  for (const { path, text, renamed } of changes) await voice.write(path, text, renamed);
  await tellTests(voice, await runTests(voice));
  await voice.say(`\n\`${from}\` is now \`${to}\`. The tests above say whether something was missed.\n`);
};

const plan = async (voice: Voice): Promise<void> => {
  await voice.think('A plan only, nothing is touched.');
  const steps = [
    'Run the tests and note what fails',
    'Fix the leap year of every fourth century',
    'Rename slugify to toSlug',
    'Run the tests again',
  ];
  await voice.plan(steps, 0);
  await voice.say(
    'The plan is beside this message. I have not touched anything. Say “find and fix the failing test” to begin with the first two steps.\n',
  );
};

const destroy = async (voice: Voice): Promise<void> => {
  await voice.say(
    'That would be this command. Deny it, unless you mean it; “Reset practice workspace” brings everything back.\n',
  );
  const { exitCode } = await voice.run('rm', ['-rf', 'src', 'test']);
  await voice.say(
    exitCode === 0
      ? 'You allowed it: `src` and `test` are gone.\n'
      : `The command failed with exit code ${exitCode ?? 'unknown'}.\n`,
  );
};

const note = async (voice: Voice, prompt: string): Promise<void> => {
  const path = 'NOTES.md';
  const line = (/note(?:\s+down)?\s*[:,]?\s*(.+)/is.exec(prompt)?.[1] ?? '').replace(/\s+/g, ' ').slice(0, 200);
  if (line === '') return voice.say('Tell me what to note: “note: water the plants”.\n');
  const before = await voice.read(path);
  await voice.write(path, before ?? '', `${before ?? '# Notes\n\n'}- ${line}\n`);
  await voice.say(`Noted in \`${path}\`.\n`);
};

/** Looks harmless at its beginning and is not at its end: what a card has to show. */
const cleanUp = async (voice: Voice): Promise<void> => {
  await voice.say('I tidy up with one command. Read the card before you answer: not all of it is tidying.\n');
  const { exitCode } = await voice.run('sh', ['-c', 'ls src && rm -rf ./test && echo "export PATH=." >> .envrc']);
  await voice.say(
    exitCode === 0
      ? 'You allowed it: `test` is gone, and `.envrc` would change your shell. “Reset practice workspace” brings everything back.\n'
      : `The command failed with exit code ${exitCode ?? 'unknown'}.\n`,
  );
};

const count = async (voice: Voice, prompt: string): Promise<void> => {
  const to = Math.min(Number(/\d+/.exec(prompt)?.[0] ?? 20), 10_000);
  await voice.count(to);
};

const remember = async (voice: Voice, _prompt: string, before: readonly string[]): Promise<void> => {
  if (before.length === 0) return voice.say('This is your first message to me here.\n');
  await voice.say(
    `You have asked me this so far:\n\n${before.map((prompt) => `- ${prompt.replace(/\s+/g, ' ').slice(0, 200)}`).join('\n')}\n`,
  );
};

const requests: readonly Request[] = [
  { name: 'remember', matches: /\b(remember|asked you|what did i)\b/i, act: remember },
  { name: 'count', matches: /\bcount to \d+/i, act: count },
  { name: 'note', matches: /^\s*(please\s+)?\/?note\b/i, act: note },
  { name: 'clean up', matches: /\bclean(\s|-)?up\b|\btidy\b/i, act: cleanUp },
  { name: 'delete', matches: /\b(delete|remove|wipe|erase)\b|\brm -/i, act: destroy },
  { name: 'rename', matches: /\brename\b/i, act: renameFunction },
  { name: 'plan', matches: /\bplan\b/i, act: plan },
  { name: 'fix', matches: /\b(fix|mend|repair|failing)\b/i, act: fix },
  { name: 'test', matches: /\btests?\b/i, act: async (voice) => tellTests(voice, await runTests(voice)) },
  { name: 'explain', matches: /\b(explain|describe|understand|what does|how does|what is this)\b/i, act: explain },
];

/** Slash commands the client may offer. */
export const commands: readonly { name: string; description: string }[] = [
  { name: 'explain', description: 'Explain the code of the practice workspace' },
  { name: 'test', description: 'Run the tests' },
  { name: 'fix', description: 'Find and fix the failing test' },
  { name: 'rename', description: 'Rename a function: rename slugify to toSlug' },
  { name: 'plan', description: 'Make a plan, touching nothing' },
];

/** Answers one prompt. `before` are the prompts of earlier turns. @throws AbortError when the turn is cancelled */
export const answer = async (voice: Voice, prompt: string, before: readonly string[]): Promise<void> => {
  if (before.length === 0) await voice.say(greeting);
  const request = requests.find(({ matches }) => matches.test(prompt));
  if (request === undefined)
    return voice.say(`${before.length === 0 ? '' : 'I am scripted and did not understand that. '}${whatICan()}`);
  try {
    await request.act(voice, prompt, before);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    await voice.say(`\nThat did not happen; the answer was “${error.message}”. I take it as a no and stop here.\n`);
  }
};
