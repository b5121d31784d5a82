import { formatDay } from './dates.js';
import { slugify } from './slug.js';

export { daysInMonth, formatDay, isLeapYear, nextDay } from './dates.js';
export { slugify } from './slug.js';

/** File name of a diary entry. */
export function entryName(date, title) {
  const slug = slugify(title);
  return slug === '' ? `${formatDay(date)}.md` : `${formatDay(date)}-${slug}.md`;
}
