import { describe, expect, it } from 'vitest';
import { itemOf, stepsTo } from './addresses';
import { gridLayout, squareAt, squareByKey, squaresBetween } from './gridLayout';
import { ItemStates } from './itemStates';
import { rateOf, rateText, type Sample, withSample } from './rate';

const ALL = new Set<string>();

describe('the states of items', () => {
  it('are a letter each; those that have not begun are pending', () => {
    const items = new ItemStates('each', 'CCFW', 6, false);
    expect(items.count).toBe(6);
    expect([0, 2, 3, 5].map((position) => items.stateAt(position))).toEqual([
      'COMPLETED',
      'FAILED',
      'WAITING',
      'PENDING',
    ]);
    expect(items.counts()).toEqual({ COMPLETED: 2, FAILED: 1, WAITING: 1, PENDING: 2 });
    expect(items.hasBegun(3)).toBe(true);
    expect(items.hasBegun(4)).toBe(false);
    expect(items.addressAt(3)).toBe('each[3]');
  });

  it('can be filtered', () => {
    const items = new ItemStates('each', 'CFCF', 5, false);
    expect(items.positionsIn(new Set(['FAILED']))).toEqual([1, 3]);
    expect(items.positionsIn(new Set(['FAILED', 'PENDING']))).toEqual([1, 3, 4]);
    expect(items.positionsIn(ALL)).toEqual([0, 1, 2, 3, 4]);
  });

  it('of rounds begin at 1, the latest first', () => {
    const rounds = new ItemStates('loop', 'CCR', 3, true);
    expect(rounds.positionsIn(ALL).map((position) => rounds.addressAt(position))).toEqual([
      'loop[3]',
      'loop[2]',
      'loop[1]',
    ]);
    expect(rounds.positionOf(3)).toBe(2);
  });
});

describe('the grid', () => {
  it('finds the square under a point, and none beside the squares', () => {
    const layout = gridLayout(100, 250);
    expect(layout.columns).toBe(10);
    expect(squareAt(layout, 5, 5)).toBe(0);
    expect(squareAt(layout, 249, 26)).toBe(19);
    expect(squareAt(layout, 255, 5)).toBeNull();
    expect(squareAt(layout, 5, layout.height + 1)).toBeNull();
  });

  it('draws of 100,000 squares only those in sight', () => {
    const layout = gridLayout(100_000, 440);
    const [first, last] = squaresBetween(layout, 5000, 5400);
    expect(first).toBeGreaterThan(0);
    expect(last - first).toBeLessThan(5000);
    const [, end] = squaresBetween(layout, layout.height - 100, layout.height + 100);
    expect(end).toBe(99_999);
  });

  it('moves by keys and stays inside', () => {
    const layout = gridLayout(25, 250);
    expect(squareByKey(layout, 0, 'ArrowRight', 5)).toBe(1);
    expect(squareByKey(layout, 0, 'ArrowLeft', 5)).toBe(0);
    expect(squareByKey(layout, 3, 'ArrowDown', 5)).toBe(13);
    expect(squareByKey(layout, 23, 'ArrowDown', 5)).toBe(24);
    expect(squareByKey(layout, 23, 'Home', 5)).toBe(0);
    expect(squareByKey(layout, 3, 'End', 5)).toBe(24);
    expect(squareByKey(layout, 3, 'a', 5)).toBeNull();
  });

  it('of nothing has no squares', () => {
    const layout = gridLayout(0, 220);
    expect(squareAt(layout, 1, 1)).toBeNull();
    expect(squareByKey(layout, 0, 'End', 5)).toBeNull();
    const [first, last] = squaresBetween(layout, 0, 400);
    expect(last).toBeLessThan(first);
  });
});

describe('an address', () => {
  const isNode = (id: string) => ['each', 'odd[1]', 'a[x]'].includes(id);

  it('leads through the maps that it is inside of', () => {
    expect(stepsTo('each[3].inner[12].call', isNode)).toEqual([
      { nodeId: 'each', item: 'each[3]', index: 3 },
      { nodeId: 'each[3].inner', item: 'each[3].inner[12]', index: 12 },
    ]);
    expect(itemOf('each[3].inner', isNode)).toBe('each[3]');
    expect(itemOf('each[3]', isNode)).toBe('each[3]');
  });

  it('of a node whose id has brackets is no item', () => {
    expect(itemOf('odd[1]', isNode)).toBeNull();
    expect(itemOf('nobody[1]', isNode)).toBeNull();
    expect(itemOf('a[x][2].fetch', isNode)).toBe('a[x][2]');
  });
});

describe('the rate', () => {
  it('follows the last half minute and begins anew in a retry', () => {
    let samples: Sample[] = [];
    samples = withSample(samples, { at: 0, ended: 0 });
    samples = withSample(samples, { at: 10_000, ended: 100 });
    expect(rateOf(samples, 10_000)).toBe(10);
    samples = withSample(samples, { at: 41_000, ended: 200 });
    expect(samples).toHaveLength(1);
    samples = withSample(samples, { at: 42_000, ended: 3 });
    expect(samples).toEqual([{ at: 42_000, ended: 3 }]);
  });

  it('is unknown at first and sinks while nothing ends', () => {
    const samples = [
      { at: 0, ended: 0 },
      { at: 1000, ended: 20 },
    ];
    expect(rateOf(samples.slice(0, 1), 500)).toBeNull();
    expect(rateOf([], 500)).toBeNull();
    expect(rateOf(samples, 1000)).toBe(20);
    expect(rateOf(samples, 10_000)).toBe(2);
  });

  it('is told in a unit that can be read', () => {
    expect(rateText(1234.4)).toBe('1,234 items/s');
    expect(rateText(2.25)).toBe('2.3 items/s');
    expect(rateText(0.1)).toBe('6.0 items/min');
  });
});
