import assert from 'node:assert/strict';
import test from 'node:test';
import { daysInMonth, formatDay, isLeapYear, nextDay } from '../src/index.js';

test('every fourth year is a leap year', () => {
  assert.equal(isLeapYear(2024), true);
  assert.equal(isLeapYear(2023), false);
});

test('a century is not a leap year', () => {
  assert.equal(isLeapYear(1900), false);
  assert.equal(daysInMonth(2100, 2), 28);
});

test('every fourth century is a leap year again', () => {
  assert.equal(daysInMonth(2000, 2), 29);
});

test('the day after the last of a month is the first of the next', () => {
  assert.deepEqual(nextDay({ year: 2024, month: 2, day: 29 }), { year: 2024, month: 3, day: 1 });
  assert.deepEqual(nextDay({ year: 2023, month: 12, day: 31 }), { year: 2024, month: 1, day: 1 });
});

test('days are written so that they sort', () => {
  assert.equal(formatDay({ year: 987, month: 6, day: 5 }), '0987-06-05');
});
