// The conditions of nodes as texts on edges.
import type { GraphEdge } from '../api/calls';
import type { NodeStore } from './nodeStore';

const CHARACTERS_MAX = 30;

export type EdgeCondition = { short: string; whole: string };

/**
 * By edge: the condition of the node that it leads to. It stands on the edges from the nodes that
 * it reads, or on the first edge if it reads none of them.
 */
export function edgeConditions(
  store: NodeStore,
  edges: readonly GraphEdge[],
  keyOf: (edge: GraphEdge) => string | null,
): Map<string, EdgeCondition> {
  const byTarget = new Map<string, GraphEdge[]>();
  for (const edge of edges) {
    if (!store.get(edge.to)?.condition) continue;
    byTarget.set(edge.to, [...(byTarget.get(edge.to) ?? []), edge]);
  }
  const texts = new Map<string, EdgeCondition>();
  for (const [nodeId, incoming] of byTarget) {
    const condition = store.get(nodeId)?.condition ?? '';
    const read = incoming.filter(({ from }) => reads(condition, from));
    for (const edge of read.length ? read : incoming.slice(0, 1)) {
      const key = keyOf(edge);
      if (key) texts.set(key, { short: shortened(condition), whole: condition });
    }
  }
  return texts;
}

export function reads(condition: string, nodeId: string): boolean {
  const name = nodeId.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(^|[^\\w.])${name}($|\\W)`).test(condition);
}

function shortened(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length <= CHARACTERS_MAX ? line : `${line.slice(0, CHARACTERS_MAX - 1)}…`;
}
