import { expect, test } from 'vitest';
import { aliasesAt, meaning, names, percent, wrongAlias } from './aliases';

const ALIASES = {
  stable: { '3': 100 },
  canary: { '3': 90, '4': 10 },
  latest: { '4': 100 },
  old: { '3': 0, '1': 1 },
};

test('which aliases mean a version, and how much of them', () => {
  expect(aliasesAt(ALIASES, 3)).toEqual([
    { alias: 'canary', share: 0.9 },
    { alias: 'stable', share: null },
  ]);
  expect(aliasesAt(ALIASES, 4)).toEqual([
    { alias: 'latest', share: null },
    { alias: 'canary', share: 0.1 },
  ]);
  expect(aliasesAt(ALIASES, 9)).toEqual([]);
});

test('latest stands first', () => {
  expect(names(ALIASES)).toEqual(['latest', 'canary', 'old', 'stable']);
});

test('what an alias means', () => {
  expect(meaning({ '3': 100 })).toBe('3');
  expect(meaning({ '3': 10, '4': 90 })).toBe('4 (90 %), 3 (10 %)');
  expect(meaning({ '3': 0, '1': 1 })).toBe('1');
});

test('shares as text', () => {
  expect(percent(0.9)).toBe('90 %');
  expect(percent(0.015)).toBe('1.5 %');
  expect(percent(0.05)).toBe('5 %');
  expect(percent(0)).toBe('0 %');
});

test('names that the API would refuse', () => {
  expect(wrongAlias('next', ALIASES)).toBe(null);
  expect(wrongAlias('latest', ALIASES)).not.toBe(null);
  expect(wrongAlias('stable', ALIASES)).not.toBe(null);
  expect(wrongAlias('3', ALIASES)).not.toBe(null);
  expect(wrongAlias('', ALIASES)).not.toBe(null);
});
