import { expect, it } from 'vitest';
import type { ListedNode } from '../../api/calls';
import { itemsOf } from './items';

function listed(node_id: string, state: string): ListedNode {
  return { node_id, state, attempt: 1 } as ListedNode;
}

it('makes one item of its nodes, under way until it has a record of its own', () => {
  const nodes = [
    listed('a[x][0]', 'FAILED'),
    listed('a[x][0].fetch', 'COMPLETED'),
    listed('a[x][1].fetch', 'QUEUED'),
  ];
  expect(itemsOf('a[x]', nodes)).toEqual([
    { id: 'a[x][0]', state: 'FAILED' },
    { id: 'a[x][1]', state: 'RUNNING' },
  ]);
});
