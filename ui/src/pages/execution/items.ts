import type { ListedNode } from '../../api/calls';

export type Item = { id: string; state: string };

/** The items of these nodes. An item without a record of its own is under way. */
export function itemsOf(nodeId: string, nodes: readonly ListedNode[]): Item[] {
  const items = new Map<string, Item>();
  for (const node of nodes) {
    const end = node.node_id.indexOf(']', nodeId.length);
    const id = node.node_id.slice(0, end + 1);
    if (node.node_id === id) items.set(id, { id, state: node.state });
    else if (!items.has(id)) items.set(id, { id, state: 'RUNNING' });
  }
  return [...items.values()];
}
