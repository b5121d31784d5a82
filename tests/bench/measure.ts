/** Numbers and rows: how a figure is summed up, compared with its floor and judged. Pure. */

export interface Figure {
  readonly value: number;
  readonly min: number;
  readonly max: number;
  /** How many measurements it is the median of. */
  readonly runs: number;
}

export interface Row {
  /** Of spec 11, or A7 for the acceptance of issue A. */
  readonly row: string;
  /** Names the part that measures it (`--only`). */
  readonly name: string;
  readonly what: string;
  readonly unit: 'ms' | 'KiB' | 'MB' | '%' | '/s' | '';
  readonly floor: Figure | null;
  readonly ours: Figure;
  /** In words, as the spec has it. */
  readonly target: string;
  readonly pass: boolean;
  /** What else was seen: parts, counts, the second figure of a pair. */
  readonly note?: string;
}

export const quantile = (values: readonly number[], part: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(part * sorted.length) - 1))] ?? Number.NaN;
};

export const figure = (values: readonly number[]): Figure => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const value =
    sorted.length % 2 === 1
      ? (sorted[Math.floor(middle)] ?? Number.NaN)
      : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
  return { value, min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN, runs: values.length };
};

export const ratio = (ours: Figure, floor: Figure | null): number | null =>
  floor === null || floor.value === 0 ? null : ours.value / floor.value;

/** A row whose target is a multiple of its floor. */
export const timesFloor = (row: Omit<Row, 'pass' | 'target'> & { floor: Figure }, most: number): Row => ({
  ...row,
  target: `≤ ${most}× floor`,
  pass: row.ours.value <= most * row.floor.value,
});
/** A row whose target is a number of its own unit. */
export const atMost = (row: Omit<Row, 'pass' | 'target'>, most: number): Row => ({
  ...row,
  target: `≤ ${most} ${row.unit}`.trim(),
  pass: row.ours.value <= most,
});

/** Runs `work` so many times, one after another. */
export const repeat = async (times: number, work: (run: number) => Promise<number>): Promise<number[]> => {
  const values: number[] = [];
  for (let run = 0; run < times; run += 1) values.push(await work(run));
  return values;
};

const digits = (value: number): string =>
  Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);

const figureText = (one: Figure | null, unit: string): string => {
  if (one === null) return '–';
  const spread = one.runs > 1 ? ` (${digits(one.min)}–${digits(one.max)})` : '';
  return `${digits(one.value)} ${unit}`.trim() + spread;
};

/** The table as it is printed; `reasons` says for a row's text why it misses. */
export const tableText = (rows: readonly Row[], reasons: Readonly<Record<string, string>>): string => {
  const head = ['row', 'what', 'floor', 'ours', 'ratio', 'target', '', 'note / reason'];
  const lines = rows.map((row) => {
    const compared = ratio(row.ours, row.floor);
    const reason = row.pass ? undefined : reasons[`${row.row} ${row.what}`];
    return [
      row.row,
      row.what,
      figureText(row.floor, row.unit),
      figureText(row.ours, row.unit),
      compared === null ? '–' : `${compared.toFixed(2)}×`,
      row.target,
      row.pass ? 'PASS' : 'MISS',
      [row.note, reason].filter((text) => text !== undefined).join(' · '),
    ];
  });
  const widths = head.map((title, column) =>
    Math.max(title.length, ...lines.map((line) => (line[column] ?? '').length)),
  );
  const print = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  return [print(head), print(widths.map((width) => '-'.repeat(Math.min(width, 60)))), ...lines.map(print)].join('\n');
};
