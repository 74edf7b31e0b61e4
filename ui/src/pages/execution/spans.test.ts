import { expect, it } from 'vitest';
import type { GraphNode } from '../../api/calls';
import { earlierAttempts, spansOf, ticks } from './spans';

const base = { handler: 'noop', level: 0, optional: false, reason: null, attempt: 1, error: null };
const at = (second: number) => `2026-01-31T12:00:${String(second).padStart(2, '0')}.000Z`;

it('puts nodes in the order in which they were queued, and leaves out what never ran', () => {
  const nodes: GraphNode[] = [
    {
      ...base,
      id: 'late',
      state: 'RUNNING',
      queued_at: at(3),
      started_at: at(4),
      finished_at: null,
    },
    {
      ...base,
      id: 'early',
      state: 'COMPLETED',
      queued_at: at(1),
      started_at: at(5),
      finished_at: at(6),
    },
    {
      ...base,
      id: 'data',
      state: 'COMPLETED',
      queued_at: null,
      started_at: null,
      finished_at: at(2),
    },
    {
      ...base,
      id: 'skipped',
      state: 'SKIPPED',
      queued_at: null,
      started_at: null,
      finished_at: at(2),
    },
    {
      ...base,
      id: 'pending',
      state: 'PENDING',
      queued_at: null,
      started_at: null,
      finished_at: null,
    },
  ];
  expect(spansOf(nodes).map((span) => [span.id, span.to === null])).toEqual([
    ['early', false],
    ['data', false],
    ['late', true],
  ]);
});

it('draws a handful of lines on any scale', () => {
  for (const length of [3, 70, 900, 12_345, 3_600_000, 86_400_000 * 30]) {
    const times = ticks(length);
    expect(times[0]).toBe(0);
    expect(times.length).toBeGreaterThan(2);
    expect(times.length).toBeLessThan(14);
  }
  expect(ticks(0)).toEqual([0]);
});

it('finds the attempts before the last, also those that reported no start', () => {
  const line = (seq: number, to: string, attempt: number) => ({
    seq,
    at: at(seq),
    node_id: 'a',
    from: '',
    to,
    attempt,
  });
  const history = [
    line(1, 'QUEUED', 1),
    line(2, 'RUNNING', 1),
    line(3, 'RETRYING', 1),
    line(4, 'QUEUED', 2),
    line(6, 'RETRYING', 2),
    line(7, 'QUEUED', 3),
    line(8, 'COMPLETED', 3),
  ];
  const seconds = (earlierAttempts(history).get('a') ?? []).map(
    ({ from, to }) => (to - from) / 1000,
  );
  expect(seconds).toEqual([1, 2]);
});
