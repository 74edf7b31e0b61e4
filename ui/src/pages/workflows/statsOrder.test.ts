import { expect, test } from 'vitest';
import type { NodeStats } from '../../api/calls';
import { nextSort, readSort, sortedStats } from './statsOrder';

const row = (node_id: string, count: number, p50_seconds: number | null): NodeStats => ({
  node_id,
  handler: 'noop',
  count,
  failed: 0,
  skipped: 0,
  failure_rate: 0,
  attempts: count,
  p50_seconds,
  p95_seconds: p50_seconds,
});
const ROWS = [row('b', 2, 1), row('c', 2, null), row('a', 5, 0.5)];
const order = (text: string | null) => sortedStats(ROWS, readSort(text)).map((row) => row.node_id);

test('sorts by a column, and else as the plan has it', () => {
  expect(order(null)).toEqual(['b', 'c', 'a']);
  expect(order('node_id')).toEqual(['a', 'b', 'c']);
  expect(order('-count')).toEqual(['a', 'b', 'c']);
  expect(order('count')).toEqual(['b', 'c', 'a']);
  expect(order('nonsense')).toEqual(['b', 'c', 'a']);
});

test('rows without a value stand last', () => {
  expect(order('p50_seconds')).toEqual(['a', 'b', 'c']);
  expect(order('-p50_seconds')).toEqual(['b', 'a', 'c']);
});

test('clicks go through both orders and back', () => {
  expect(nextSort(null, 'count')).toBe('-count');
  expect(nextSort(readSort('-count'), 'count')).toBe('count');
  expect(nextSort(readSort('count'), 'count')).toBe(null);
  expect(nextSort(null, 'node_id')).toBe('node_id');
  expect(nextSort(readSort('node_id'), 'node_id')).toBe('-node_id');
});
