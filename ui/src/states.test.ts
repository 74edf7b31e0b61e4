import { expect, test } from 'vitest';
import { harmlessClass } from './states';

test('only an optional node that failed is dim', () => {
  expect(harmlessClass({ state: 'FAILED', optional: true })).toBe('harmless');
  expect(harmlessClass({ state: 'FAILED', optional: false })).toBe('');
  expect(harmlessClass({ state: 'COMPLETED', optional: true })).toBe('');
});
