import assert from 'node:assert/strict';
import test from 'node:test';
import { entryName, slugify } from '../src/index.js';

test('a slug is lower case and joined by hyphens', () => {
  assert.equal(slugify('  A long walk! '), 'a-long-walk');
});

test('a slug has no accents', () => {
  assert.equal(slugify('Café in Örebro'), 'cafe-in-orebro');
});

test('an entry is named by its day and its title', () => {
  assert.equal(entryName({ year: 2024, month: 2, day: 28 }, 'A long walk'), '2024-02-28-a-long-walk.md');
  assert.equal(entryName({ year: 2024, month: 2, day: 28 }, '…'), '2024-02-28.md');
});
