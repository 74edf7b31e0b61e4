import type { GraphEdge, GraphNode } from '../api/calls';

/**
 * The chain of nodes that the end had to wait for: from the last node to finish back through what
 * each waited for.
 */
export function criticalPath(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): string[] {
  const finished = new Map(
    nodes
      .filter((node) => node.finished_at && node.state !== 'SKIPPED')
      .map((node) => [node.id, node]),
  );
  const parents = new Map<string, string[]>();
  for (const edge of edges) {
    if (!finished.has(edge.from) || !finished.has(edge.to)) continue;
    const parentIds = parents.get(edge.to);
    if (parentIds) parentIds.push(edge.from);
    else parents.set(edge.to, [edge.from]);
  }
  const path: string[] = [];
  let node = latest([...finished.values()]);
  while (node) {
    path.push(node.id);
    node = latest((parents.get(node.id) ?? []).map((id) => finished.get(id) as GraphNode));
  }
  return path.reverse();
}

/** The node that finished last; of those that finished in the same millisecond, the deepest. */
function latest(nodes: GraphNode[]): GraphNode | undefined {
  let last: GraphNode | undefined;
  for (const node of nodes) {
    if (!last || isLater(node, last)) last = node;
  }
  return last;
}

function isLater(node: GraphNode, other: GraphNode): boolean {
  const finishedAt = node.finished_at ?? '';
  const otherFinishedAt = other.finished_at ?? '';
  if (finishedAt === otherFinishedAt) return node.level > other.level;
  return finishedAt > otherFinishedAt;
}
