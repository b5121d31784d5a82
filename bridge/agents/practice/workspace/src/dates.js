/** Dates are plain objects: `month` counts from 1. Gregorian calendar, no time zones. */

const monthLengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** True for a year with a 29th of February. */
export function isLeapYear(year) {
  return year % 4 === 0 && year % 100 !== 0;
}

/** How many days the month has. */
export function daysInMonth(year, month) {
  if (month === 2 && isLeapYear(year)) return 29;
  return monthLengths[month - 1];
}

/** The day after the given one. */
export function nextDay({ year, month, day }) {
  if (day < daysInMonth(year, month)) return { year, month, day: day + 1 };
  if (month < 12) return { year, month: month + 1, day: 1 };
  return { year: year + 1, month: 1, day: 1 };
}

/** `2024-02-29` */
export function formatDay({ year, month, day }) {
  const pad = (number, length) => String(number).padStart(length, '0');
  return `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}`;
}
