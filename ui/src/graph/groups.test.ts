import { describe, expect, it } from 'vitest';
import { bundles, Grouping, type Item, NODES_MAX } from './groups';

const square = (depth: number, width: number) =>
  Array.from({ length: depth * width }, (_, n) => Math.floor(n / width));

function indexes(grouping: Grouping, items: Item[]): number[] {
  return items
    .flatMap((item) => (item.kind === 'node' ? [item.index] : grouping.members(item.group)))
    .sort((a, b) => a - b);
}

describe('a grouping', () => {
  const shapes = {
    '100 × 100': square(100, 100),
    '10,000 deep': square(10_000, 1),
    '10,000 wide': square(1, 10_000),
    'one node': [0],
    'levels out of order': [2, 0, 1, 0, 2],
  };
  for (const [name, levels] of Object.entries(shapes)) {
    it(`shows every node of ${name} once, whatever is open`, () => {
      const grouping = new Grouping(levels);
      const all = levels.map((_, index) => index);
      const opened = new Set<string>();
      for (let step = 0; step < 4; step += 1) {
        const items = grouping.items(opened);
        expect(indexes(grouping, items)).toEqual(all);
        const group = items.find((item) => item.kind === 'group');
        if (group?.kind === 'group') opened.add(group.group.key);
      }
    });

    it(`brings any node of ${name} to light`, () => {
      const grouping = new Grouping(levels);
      for (const index of [0, Math.floor(levels.length / 2), levels.length - 1]) {
        const items = grouping.items(new Set(grouping.groupsAround(index)));
        expect(items).toContainEqual({ kind: 'node', index, level: levels[index] });
        expect(items.length).toBeLessThan(NODES_MAX);
      }
    });
  }

  it('begins with few boxes', () => {
    for (const levels of Object.values(shapes)) {
      expect(new Grouping(levels).items(new Set()).length).toBeLessThanOrEqual(20);
    }
  });

  it('of nothing is empty', () => {
    expect(new Grouping([]).items(new Set())).toEqual([]);
  });
});

describe('bundles', () => {
  it('join the edges between two boxes, and leave out those inside of one', () => {
    const itemOf = new Map([
      ['a', 'g1'],
      ['b', 'g1'],
      ['c', 'g2'],
    ]);
    const edges = [
      { from: 'a', to: 'b' },
      { from: 'a', to: 'c' },
      { from: 'b', to: 'c' },
      { from: 'c', to: 'gone' },
    ];
    expect(bundles(edges, itemOf)).toEqual([{ from: 'g1', to: 'g2', count: 2 }]);
  });
});
