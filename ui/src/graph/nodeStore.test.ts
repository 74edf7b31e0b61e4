import { describe, expect, it, vi } from 'vitest';
import type { GraphNode, Transition } from '../api/calls';
import { criticalPath } from './criticalPath';
import { countStates, NodeStore } from './nodeStore';

const AT = '2026-01-31T12:00:0';

function node(id: string, more: Partial<GraphNode> = {}): GraphNode {
  return {
    id,
    handler: 'noop',
    level: 0,
    optional: false,
    state: 'PENDING',
    reason: null,
    attempt: 0,
    error: null,
    queued_at: null,
    started_at: null,
    finished_at: null,
    ...more,
  };
}

function event(
  seq: number,
  node_id: string | null,
  to: string,
  more: Partial<Transition> = {},
): Transition {
  return {
    seq,
    at: `${AT}${seq}.000Z`,
    node_id,
    from: '',
    to,
    attempt: 1,
    reason: null,
    execution_id: 'e',
    ...more,
  };
}

describe('a store of nodes', () => {
  it('takes over the counts of a map, and nothing of what it does not have', () => {
    const items = { total: 9, open: 2, completed: 3, failed: 1, skipped: 0, cancelled: 0 };
    const store = new NodeStore([node('each', { state: 'WAITING' }), node('after')]);
    const untouched = store.get('after');
    store.applyCounts([
      { execution_id: 'e', node_id: 'each', items },
      { execution_id: 'e', node_id: 'each[3].inner', items },
    ]);
    expect(store.get('each')?.items).toEqual(items);
    expect(store.get('after')).toBe(untouched);
    expect(store.ids).toEqual(['each', 'after']);
  });

  it('knows which waits have no time yet, and takes over only the times', () => {
    const until = '2026-01-31T13:00:00.000Z';
    const pause = { total: 1, open: 0, completed: 1, failed: 0, skipped: 0, cancelled: 0 };
    const store = new NodeStore([
      node('nap'),
      node('loop', { handler: 'repeat', state: 'WAITING', items: { ...pause, open: 1 } }),
      node('map', { handler: 'for_each', state: 'WAITING', items: pause }),
    ]);
    expect(store.withoutTimes()).toEqual([]);
    store.apply([event(1, 'nap', 'WAITING')]);
    store.applyCounts([{ execution_id: 'e', node_id: 'loop', items: pause }]);
    expect(store.withoutTimes().map(({ id }) => id)).toEqual(['nap', 'loop']);
    store.updateTimes([
      node('nap', { state: 'WAITING', attempt: 1, until }),
      node('loop', { state: 'COMPLETED', until }),
    ]);
    expect(store.get('nap')?.until).toBe(until);
    expect(store.get('loop')?.until).toBeFalsy();
    store.apply([event(2, 'nap', 'COMPLETED')]);
    expect(store.get('nap')?.until).toBeNull();
  });

  it('follows a node through its attempts', () => {
    const store = new NodeStore([node('a')]);
    store.apply([
      event(1, 'a', 'QUEUED'),
      event(2, 'a', 'RUNNING'),
      event(3, 'a', 'RETRYING', { reason: 'timeout' }),
    ]);
    expect(store.get('a')).toMatchObject({
      state: 'RETRYING',
      attempt: 1,
      started_at: `${AT}2.000Z`,
      reason: 'timeout',
    });
    store.apply([event(4, 'a', 'QUEUED', { attempt: 2 })]);
    expect(store.get('a')).toMatchObject({
      state: 'QUEUED',
      attempt: 2,
      started_at: null,
      finished_at: null,
    });
    store.apply([event(5, 'a', 'COMPLETED', { attempt: 2 })]);
    expect(store.get('a')).toMatchObject({ state: 'COMPLETED', finished_at: `${AT}5.000Z` });
  });

  it('changes only the nodes that events are about, and notifies once per batch', () => {
    const store = new NodeStore([node('a'), node('b')]);
    const before = store.get('b');
    const listener = vi.fn();
    store.subscribe(listener);
    store.apply([event(1, 'a', 'QUEUED'), event(2, null, 'RUNNING'), event(3, 'a', 'RUNNING')]);
    expect(store.get('b')).toBe(before);
    expect(listener).toHaveBeenCalledTimes(1);
  });

  it('adds a node that an event is the first to name, and asks for the graph', () => {
    const store = new NodeStore([node('a')]);
    const idsBefore = store.ids;
    const isOutdated = store.apply([event(1, 'gained', 'QUEUED'), event(2, 'gained', 'RUNNING')]);
    expect(isOutdated).toBe(true);
    expect(store.get('gained')).toMatchObject({
      state: 'RUNNING',
      attempt: 1,
      started_at: `${AT}2.000Z`,
    });
    expect(store.ids).toEqual(['a', 'gained']);
    expect(store.ids).not.toBe(idsBefore);
    expect(store.all().map((listed) => listed.id)).toEqual(['a', 'gained']);
  });

  it('does not ask for the graph for nodes that it lists', () => {
    const store = new NodeStore([node('a')]);
    const idsBefore = store.ids;
    expect(store.apply([event(1, 'a', 'QUEUED'), event(2, null, 'RUNNING')])).toBe(false);
    expect(store.ids).toBe(idsBefore);
  });

  it('asks again until the graph lists the node', () => {
    const store = new NodeStore([node('a')]);
    store.apply([event(1, 'gained', 'QUEUED')]);
    store.update([node('a')]);
    expect(store.ids).toEqual(['a', 'gained']);
    expect(store.apply([event(2, 'gained', 'RUNNING')])).toBe(true);
    store.update([node('gained', { state: 'RUNNING', handler: 'echo', level: 1 }), node('a')]);
    expect(store.ids).toEqual(['gained', 'a']);
    expect(store.get('gained')).toMatchObject({ handler: 'echo', level: 1 });
    expect(store.apply([event(3, 'gained', 'COMPLETED')])).toBe(false);
  });

  it('takes over what the server has, and leaves equal nodes the same objects', () => {
    const store = new NodeStore([node('a'), node('b')]);
    const a = store.get('a');
    const ids = store.ids;
    store.update([node('a'), node('b', { state: 'FAILED' })]);
    expect(store.get('a')).toBe(a);
    expect(store.get('b')?.state).toBe('FAILED');
    expect(store.ids).toBe(ids);
  });

  it('counts states', () => {
    expect(countStates([node('a'), node('b', { state: 'FAILED' }), undefined])).toEqual({
      PENDING: 1,
      FAILED: 1,
    });
  });
});

describe('the critical path', () => {
  const done = (id: string, second: number, level: number, state = 'COMPLETED') =>
    node(id, { state, level, finished_at: `${AT}${second}.000Z` });

  it('goes back from the last to finish through what each waited for', () => {
    const nodes = [done('a', 1, 0), done('fast', 2, 1), done('slow', 5, 1), done('join', 6, 2)];
    const edges = [
      { from: 'a', to: 'fast' },
      { from: 'a', to: 'slow' },
      { from: 'fast', to: 'join' },
      { from: 'slow', to: 'join' },
    ];
    expect(criticalPath(nodes, edges)).toEqual(['a', 'slow', 'join']);
  });

  it('takes the deepest of those that finished in the same millisecond, and no skipped node', () => {
    const nodes = [done('a', 3, 0), done('b', 3, 1), done('c', 9, 2, 'SKIPPED')];
    const edges = [
      { from: 'a', to: 'b' },
      { from: 'b', to: 'c' },
    ];
    expect(criticalPath(nodes, edges)).toEqual(['a', 'b']);
  });

  it('of a run in which nothing ended is empty', () => {
    expect(criticalPath([node('a')], [])).toEqual([]);
  });
});
