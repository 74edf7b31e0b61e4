import { expect, test } from 'vitest';
import { emptyList, type ListState, reduce } from './listState';

type Item = { execution_id: string; created_at: string; state: string };

const item = (n: number, state = 'RUNNING'): Item => ({
  execution_id: `e${n}`,
  created_at: `2026-01-01T00:00:${String(n).padStart(2, '0')}Z`,
  state,
});
const page = (numbers: number[], next: string | null, state = 'RUNNING') => ({
  items: numbers.map((n) => item(n, state)),
  next_cursor: next,
});
const ids = (list: ListState<Item>) => list.rows.map((row) => Number(row.execution_id.slice(1)));
const newest = (
  list: ListState<Item>,
  numbers: number[],
  next: string | null,
  paused = false,
  state = 'RUNNING',
) => reduce(list, { type: 'newest', key: 'a', page: page(numbers, next, state), paused });
const older = (list: ListState<Item>, cursor: string, numbers: number[], next: string | null) =>
  reduce(list, { type: 'older', key: 'a', cursor, page: page(numbers, next) });

const initial = newest(emptyList<Item>(), [9, 8, 7], 'c7');

test('a lone newest page is replaced by the next one', () => {
  expect(ids(initial)).toEqual([9, 8, 7]);
  const then = newest(initial, [10, 9, 8], 'c8');
  expect(ids(then)).toEqual([10, 9, 8]);
  expect(then.next).toBe('c8');
});

test('older pages are added once, and only where the list ends', () => {
  const more = older(initial, 'c7', [6, 5], 'c5');
  expect(ids(more)).toEqual([9, 8, 7, 6, 5]);
  expect(more.next).toBe('c5');
  expect(older(more, 'c7', [6, 5], 'c5')).toBe(more);
});

test('what was loaded stays when new rows come', () => {
  const more = newest(older(initial, 'c7', [6, 5], 'c5'), [11, 10, 9], 'c9');
  expect(ids(more)).toEqual([11, 10, 9, 8, 7, 6, 5]);
  expect(more.next).toBe('c5');
});

test('rows that fit no more go from the stretch that was read', () => {
  const more = newest(older(initial, 'c7', [6, 5], 'c5'), [9, 7, 6], 'c6');
  expect(ids(more)).toEqual([9, 7, 6, 5]);
});

test('a paused list changes its rows in place and counts new ones', () => {
  const paused = newest(initial, [11, 10, 9], 'c9', true, 'COMPLETED');
  expect(ids(paused)).toEqual([9, 8, 7]);
  expect(paused.rows.map((row) => row.state)).toEqual(['COMPLETED', 'RUNNING', 'RUNNING']);
  expect(paused.waiting).toBe(2);
  expect(paused.gap).toBe(false);
  const after = reduce(paused, { type: 'show' });
  expect(ids(after)).toEqual([11, 10, 9]);
  expect(after.waiting).toBe(0);
});

test('a gap begins the list again instead of hiding rows', () => {
  const more = older(initial, 'c7', [6, 5], 'c5');
  const paused = newest(more, [15, 14, 13], 'c13', true);
  expect(paused.gap).toBe(true);
  const after = reduce(paused, { type: 'show' });
  expect(ids(after)).toEqual([15, 14, 13]);
  expect(after.next).toBe('c13');
  expect(after.older).toEqual([]);
});

test('the last page is the whole list', () => {
  const more = newest(older(initial, 'c7', [6, 5], null), [9, 5], null);
  expect(ids(more)).toEqual([9, 5]);
  expect(more.next).toBe(null);
});

test('other filters begin anew, and late answers to the old ones are dropped', () => {
  const other = reduce(initial, {
    type: 'newest',
    key: 'b',
    page: page([2, 1], null),
    paused: true,
  });
  expect(ids(other)).toEqual([2, 1]);
  expect(older(other, 'c7', [6], null)).toBe(other);
  expect(reduce(other, { type: 'again', key: 'a', page: page([2], null, 'FAILED') })).toBe(other);
});

test('older rows are read again in place', () => {
  const again = reduce(initial, { type: 'again', key: 'a', page: page([7, 6], null, 'FAILED') });
  expect(ids(again)).toEqual([9, 8, 7]);
  expect(again.rows[2]?.state).toBe('FAILED');
});
