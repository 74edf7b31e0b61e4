import type { GraphEdge, GraphNode } from '../api/calls';

/** The chain of nodes that the end had to wait for: from the last to finish back to what each of them waited for. */
export function criticalPath(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): string[] {
  const ran = new Map(
    nodes.filter((node) => node.finished_at && node.state !== 'SKIPPED').map((node) => [node.id, node]),
  );
  const parents = new Map<string, string[]>();
  for (const edge of edges) {
    if (!ran.has(edge.from) || !ran.has(edge.to)) continue;
    const known = parents.get(edge.to);
    if (known) known.push(edge.from);
    else parents.set(edge.to, [edge.from]);
  }
  const path: string[] = [];
  let here = latest([...ran.values()]);
  while (here) {
    path.push(here.id);
    here = latest((parents.get(here.id) ?? []).map((id) => ran.get(id) as GraphNode));
  }
  return path.reverse();
}

/** Of those that finished in the same millisecond, the deepest: it came last. */
function latest(nodes: GraphNode[]): GraphNode | undefined {
  let found: GraphNode | undefined;
  for (const node of nodes) {
    const [at, best] = [node.finished_at ?? '', found?.finished_at ?? ''];
    if (!found || at > best || (at === best && node.level > found.level)) found = node;
  }
  return found;
}
