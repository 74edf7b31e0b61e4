import { describe, expect, it } from 'vitest';
import type { DeadLetter } from '../../api/calls';
import { groupsOf, normalised, openIds, shortKey } from './groups';
import { counted, howMany, portions, stillShown, withAll } from './selection';

let count = 0;
function letter(message: string, more: Partial<DeadLetter> = {}): DeadLetter {
  count += 1;
  return {
    id: count,
    execution_id: `e${count}`,
    workflow: 'order',
    version: 1,
    node_id: 'pay',
    handler: 'charge',
    at: `2026-01-01T00:00:${String(count).padStart(2, '0')}Z`,
    category: 'error',
    error: { category: 'error', message },
    attempts: [],
    attempts_dropped: 0,
    closed: null,
    closed_at: null,
    retried_as: null,
    ...more,
  };
}

describe('normalised', () => {
  it.each([
    ['card 4711 was refused', 'card <n> was refused'],
    ['took 3.25 s, 1,000 tries', 'took <n> s, <n> tries'],
    ['no user 6f1c2d3e-0000-4000-8000-1234567890ab', 'no user <id>'],
    ['object at 0x7f3a', 'object at <id>'],
    ['commit 9fceb02d0ae5 is gone', 'commit <id> is gone'],
    ['execution 01J8Z3K5QWERTY7ABC failed', 'execution <id> failed'],
    ['answered 503 after\n  2 tries', 'answered <n> after <n> tries'],
  ])('%s', (message, expected) => expect(normalised(message)).toBe(expected));

  it('leaves words alone, also long ones', () => {
    expect(normalised('the misconfigurations of call_external_service')).toBe(
      'the misconfigurations of call_external_service',
    );
  });

  it('is not slow on a long message', () => {
    const startedAt = performance.now();
    normalised('a1'.repeat(50_000));
    normalised('a-'.repeat(50_000));
    expect(performance.now() - startedAt).toBeLessThan(1000);
  });
});

describe('groupsOf', () => {
  it('puts the same error of the same node together, the largest group first', () => {
    const letters = [letter('timeout'), letter('card 1 refused'), letter('card 22 refused')];
    const groups = groupsOf(letters);
    expect(groups.map((group) => group.letters.length)).toEqual([2, 1]);
    expect(groups[0]?.message).toBe('card 1 refused');
    expect(groups[0]?.oldest).toBe(letters[1]?.at);
    expect(groups[0]?.newest).toBe(letters[2]?.at);
  });

  it('separates workflows, nodes and categories', () => {
    const groups = groupsOf([
      letter('x'),
      letter('x', { workflow: 'other' }),
      letter('x', { node_id: 'other' }),
      letter('x', { category: 'timeout' }),
      letter('x', { category: null, error: null }),
    ]);
    expect(groups).toHaveLength(5);
    expect(new Set(groups.map((group) => shortKey(group.key))).size).toBe(5);
  });

  it('offers only open letters', () => {
    const letters = [letter('x'), letter('x', { closed: 'retried' })];
    expect(openIds(letters)).toEqual([letters[0]?.id]);
  });
});

describe('selection', () => {
  it('adds and takes away', () => {
    const some = withAll(new Set([1]), [2, 3], true);
    expect([...some]).toEqual([1, 2, 3]);
    expect([...withAll(some, [1, 2], false)]).toEqual([3]);
  });

  it('tells none, some and all', () => {
    expect(howMany(new Set(), [1])).toBe('none');
    expect(howMany(new Set(), [])).toBe('none');
    expect(howMany(new Set([1]), [1, 2])).toBe('some');
    expect(howMany(new Set([1, 2]), [1, 2])).toBe('all');
  });

  it('forgets what is no longer shown', () => {
    expect(stillShown(new Set([1, 2, 3]), [3, 4])).toEqual([3]);
  });

  it('cuts into what the server takes', () => {
    expect(portions([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
    expect(portions([], 2)).toEqual([]);
  });

  it('counts in words', () => {
    expect(counted(1, 'letter')).toBe('1 letter');
    expect(counted(2, 'letter')).toBe('2 letters');
  });
});
