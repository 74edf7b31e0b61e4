import { expect, it } from 'vitest';
import { endedItems, itemsText } from './itemsText';

const items = { total: 10_000, open: 20, completed: 9950, failed: 13, skipped: 2, cancelled: 1 };

it('says how far a map is', () => {
  expect(endedItems(items)).toBe(9966);
  expect(itemsText(items, 'for_each')).toBe('9,966 of 10,000, 13 failed');
  expect(itemsText({ ...items, failed: 0 }, 'for_each')).toBe('9,953 of 10,000');
});

it('counts the rounds of a loop', () => {
  const rounds = { total: 3, open: 1, completed: 2, failed: 0, skipped: 0, cancelled: 0 };
  expect(itemsText(rounds, 'repeat')).toBe('round 3');
  expect(itemsText({ ...rounds, open: 0, completed: 3 }, 'repeat')).toBe('3 rounds');
  expect(itemsText({ ...rounds, open: 0, completed: 0, failed: 1 }, 'repeat')).toBe(
    '1 round, 1 failed',
  );
});
