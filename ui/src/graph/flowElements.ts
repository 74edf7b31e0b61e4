// The boxes and lines as React Flow wants them.
import { type Edge as FlowEdge, type Node, Position } from '@xyflow/react';
import type { EdgeCondition } from './conditions';
import { type Bundle, groupName, type Item } from './groups';
import { type Layout, routeKey, sizeOf } from './layout';
import type { Drawing } from './useDrawing';

export function flowNode(item: Item, drawing: Drawing): Node {
  const { store, ids, layout, keyOf, membersOf } = drawing;
  const { width, height } = sizeOf(item);
  const id = keyOf(item);
  const common = {
    id,
    position: layout.positions.get(id) ?? { x: 0, y: 0 },
    width,
    height,
    handles: [
      {
        type: 'target' as const,
        position: Position.Left,
        x: 0,
        y: height / 2,
        width: 1,
        height: 1,
      },
      {
        type: 'source' as const,
        position: Position.Right,
        x: width,
        y: height / 2,
        width: 1,
        height: 1,
      },
    ],
  };
  if (item.kind === 'group') {
    const members = membersOf(item.group);
    const ariaLabel = `${groupName(item.group)}, ${members.length} nodes, closed`;
    return { ...common, type: 'group-box', ariaLabel, data: { store, group: item.group, members } };
  }
  const name = ids[item.index] as string;
  const node = store.get(name);
  return {
    ...common,
    type: 'box',
    ariaLabel: `${name}, ${node?.handler}`,
    data: { store, id: name },
  };
}

/** Lines between boxes whose nodes follow each other on the critical path. */
export function criticalLinks(
  path: Iterable<string>,
  itemOf: ReadonlyMap<string, string>,
): Set<string> {
  const keys = new Set<string>();
  let from: string | undefined;
  for (const id of path) {
    const to = itemOf.get(id);
    if (from && to) keys.add(routeKey({ from, to }));
    from = to;
  }
  return keys;
}

export function flowEdge(
  link: Bundle,
  layout: Layout,
  critical: ReadonlySet<string>,
  conditions: ReadonlyMap<string, EdgeCondition>,
): FlowEdge {
  const key = routeKey(link);
  return {
    id: key,
    source: link.from,
    target: link.to,
    type: 'routed',
    data: {
      points: layout.routes.get(key),
      condition: conditions.get(key),
      place: layout.labels.get(key),
    },
    className: critical.has(key) ? 'critical' : '',
  };
}
