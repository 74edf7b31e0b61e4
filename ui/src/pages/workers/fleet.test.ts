import { describe, expect, it } from 'vitest';
import type { Queue, Worker } from '../../api/calls';
import { partitionsOwned, queueRows, rangesText, secondsNow } from './fleet';

const worker = (...queues: string[]): Worker => ({
  worker_id: 'w',
  queues,
  handlers: [],
  running: 0,
  heartbeats: 1,
  started_at: null,
  tasks: [],
});

const queue = (
  name: string,
  waiting: number,
  running: number,
  reason: string | null = null,
): Queue => ({
  queue: name,
  waiting,
  running,
  workers: 0,
  reason,
  reason_text: reason,
});

describe('queueRows', () => {
  it('tells who serves a queue, and which one nobody does', () => {
    const queues = [queue('b', 0, 2), queue('a', 0, 0), queue('gpu', 1, 0), queue('c', 9, 0)];
    const rows = queueRows(queues, [worker('a', 'b', 'c'), worker('b')]);
    expect(rows.map((row) => row.queue)).toEqual(['gpu', 'c', 'b', 'a']);
    expect(rows.map((row) => row.served)).toEqual([0, 1, 2, 1]);
    expect(rows.map((row) => row.isStuck)).toEqual([true, false, false, false]);
  });

  it('is at ease with a queue that nobody serves and nothing waits in', () => {
    expect(queueRows([queue('a', 0, 0)], [])[0]?.isStuck).toBe(false);
  });

  it('says which queue has tasks that none of its workers can run', () => {
    expect(queueRows([queue('a', 1, 0, 'no_handler')], [worker('a')])[0]?.isStuck).toBe(true);
  });
});

describe('rangesText', () => {
  it.each([
    [[], ''],
    [[3], '3'],
    [[0, 1, 2, 3, 4, 5, 6, 7], '0–7'],
    [[6, 0, 1, 2, 10, 11], '0–2, 6, 10–11'],
  ])('%j', (numbers, text) => expect(rangesText(numbers)).toBe(text));
});

it('counts a partition once', () => {
  expect(
    partitionsOwned([
      { name: 'a', partitions: [0, 1] },
      { name: 'b', partitions: [1, 2] },
    ]),
  ).toBe(3);
});

it('lets a task grow older between two looks', () => {
  expect(secondsNow(2, 1000, 2500)).toBe(3.5);
  expect(secondsNow(2, 2000, 1000)).toBe(2);
  expect(secondsNow(null, 0, 1)).toBeNull();
});
