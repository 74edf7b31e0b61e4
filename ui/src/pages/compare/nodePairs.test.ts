import { expect, it } from 'vitest';
import type { Graph } from '../../api/calls';
import { areTimesDifferent, isSame, pairs } from './nodePairs';

const node = (id: string, state: string, seconds: number) => ({
  id,
  state,
  started_at: '2026-01-01T00:00:00.000Z',
  finished_at: new Date(Date.parse('2026-01-01T00:00:00.000Z') + seconds * 1000).toISOString(),
});
const graph = (...nodes: object[]) => ({ nodes }) as unknown as Graph;

it('pairs the nodes of two executions and marks what differs', () => {
  const left = graph(
    node('a', 'COMPLETED', 1),
    node('b', 'FAILED', 1),
    node('gone', 'COMPLETED', 1),
  );
  const right = graph(
    node('a', 'COMPLETED', 1.02),
    node('b', 'COMPLETED', 9),
    node('new', 'SKIPPED', 0),
  );
  const marks = pairs(left, right, { a: { x: 1, y: 2 }, gone: 1 }, { a: { y: 2, x: 1 }, b: 3 }).map(
    (pair) => [pair.id, pair.isStateDifferent, pair.isTimeDifferent, pair.isOutputDifferent],
  );
  expect(marks).toEqual([
    ['a', false, false, false],
    ['b', true, true, true],
    ['gone', true, true, true],
    ['new', true, true, null],
  ]);
});

it('takes a small difference in time for none', () => {
  expect(areTimesDifferent(0.01, 0.05)).toBe(false);
  expect(areTimesDifferent(10, 11)).toBe(false);
  expect(areTimesDifferent(10, 13)).toBe(true);
  expect(areTimesDifferent(null, null)).toBe(false);
});

it('compares values, not the order of their keys', () => {
  expect(isSame({ a: [{ b: 1, c: 2 }] }, { a: [{ c: 2, b: 1 }] })).toBe(true);
  expect(isSame([1, 2], [2, 1])).toBe(false);
  expect(isSame(undefined, null)).toBe(true);
});
