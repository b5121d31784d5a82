/**
 * `npm run bench [-- --only NAME[,NAME]] [--json FILE]`: the rows of the performance goals, each with its floor in the same
 * run, as one table. A quiet machine is needed for the figures to mean anything; only ratios carry over to another.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkpointRows } from './checkpoint.ts';
import { gitRows } from './git.ts';
import { grepRows, listRows } from './files.ts';
import { Ground, root } from './ground.ts';
import { largeRows, rowsRows } from './large.ts';
import { ratio, tableText, type Row } from './measure.ts';
import { openRows, scrollRows } from './open.ts';
import { pageRows, wireRows } from './page.ts';
import { reasons } from './reasons.ts';
import { changesRows } from './changes.ts';
import { decideRows, verifyRows } from './sign.ts';
import { sizeRows } from './size.ts';
import { idleRows, startRows } from './start.ts';
import { streamRows, tabsRows } from './stream.ts';
import { terminalRows } from './terminal.ts';
import { verifyPageRows } from './verify-page.ts';

const parts: Readonly<Record<string, (ground: Ground) => Promise<Row[]>>> = {
  start: startRows,
  idle: idleRows,
  wire: wireRows,
  page: pageRows,
  open: openRows,
  scroll: scrollRows,
  stream: streamRows,
  tabs: tabsRows,
  terminal: terminalRows,
  decide: decideRows,
  verify: verifyRows,
  'verify-page': verifyPageRows,
  git: gitRows,
  checkpoint: checkpointRows,
  changes: changesRows,
  size: sizeRows,
  large: largeRows,
  rows: rowsRows,
  list: listRows,
  grep: grepRows,
};

const { values } = parseArgs({ options: { only: { type: 'string', multiple: true }, json: { type: 'string' } } });
const only = values.only?.flatMap((names) => names.split(','));
const unknown = only?.find((name) => !Object.hasOwn(parts, name));
if (unknown !== undefined) throw new Error(`There is no "${unknown}". Known: ${Object.keys(parts).join(' ')}`);
// What is measured is the app as it stands: a build of before has other buttons.
const built = spawnSync(process.execPath, [join(root, '.ci', 'do.mjs'), 'build'], { stdio: ['ignore', 2, 2] });
if (built.status !== 0) throw new Error('The app could not be built.');

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const machine = { node: process.version, cores: cpus().length, cpu: cpus()[0]?.model ?? '', load: loadavg()[0] ?? 0 };
say(`Node ${machine.node}, ${machine.cores} × ${machine.cpu}, load ${machine.load.toFixed(1)} at the start`);
if (machine.load > 0.5) say('This machine is not quiet: read the spread, not the figures.');

const rows: Row[] = [];
const failures: string[] = [];
const ground = new Ground();
try {
  for (const [name, measure] of Object.entries(parts)) {
    if (only !== undefined && !only.includes(name)) continue;
    const began = performance.now();
    try {
      rows.push(...(await measure(ground)));
    } catch (error) {
      failures.push(`${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
    say(`${name} (${((performance.now() - began) / 1000).toFixed(0)} s)`);
  }
} finally {
  await ground.end();
}
const load = loadavg()[0] ?? 0;
process.stdout.write(
  `\n${tableText(rows, reasons)}\n\nload ${machine.load.toFixed(1)} before, ${load.toFixed(1)} after\n`,
);
for (const failure of failures) say(`not measured: ${failure}`);
if (values.json !== undefined) {
  const measured = rows.map((row) => ({
    ...row,
    ratio: ratio(row.ours, row.floor),
    reason: row.pass ? null : (reasons[`${row.row} ${row.what}`] ?? null),
  }));
  writeFileSync(
    values.json,
    `${JSON.stringify({ machine: { ...machine, loadAfter: load }, rows: measured, failures }, null, 2)}\n`,
  );
}
process.exitCode = failures.length > 0 ? 1 : 0;
