// The graph of a document while it is typed, as far as it can be read. The server's own graph
// replaces it as soon as the document has no mistakes.
import type { WorkflowGraph } from '../api/calls';
import { childOf, nodeIdOf, nodeListOf, type TreeValue } from './documentTree';

type SketchNode = WorkflowGraph['nodes'][number];

/** A larger graph is drawn only from the server's answer. */
const NODES_MAX = 2000;

export function sketch(root: TreeValue): WorkflowGraph {
  const parents = new Map<string, string[]>();
  const nodes: SketchNode[] = [];
  for (const item of nodeListOf(root)?.items.slice(0, NODES_MAX) ?? []) {
    const id = nodeIdOf(item);
    if (!id || parents.has(id)) continue;
    parents.set(id, texts(childOf(item, 'depends_on') ?? childOf(item, 'dependencies')));
    nodes.push({
      id,
      handler: text(childOf(item, 'handler') ?? childOf(item, 'type')) ?? '',
      level: 0,
      condition: text(childOf(item, 'condition')),
      trigger_rule: text(childOf(item, 'trigger_rule')) ?? 'all_success',
      optional: false,
    });
  }
  const levels = levelsOf(parents);
  return {
    name: text(childOf(root, 'name')) ?? '',
    version: 0,
    nodes: nodes.map((node) => ({ ...node, level: levels.get(node.id) ?? 0 })),
    edges: [...parents].flatMap(([to, froms]) =>
      froms.filter((from) => parents.has(from) && from !== to).map((from) => ({ from, to })),
    ),
  };
}

function text(tree: TreeValue | undefined): string | null {
  return tree?.kind === 'scalar' && typeof tree.value === 'string' ? tree.value : null;
}

function texts(tree: TreeValue | undefined): string[] {
  if (tree?.kind !== 'list') return [];
  return [...new Set(tree.items.flatMap((item) => text(item) ?? []))];
}

/** One more than the highest level of the parents; a cycle is cut where it closes. */
function levelsOf(parents: ReadonlyMap<string, string[]>): Map<string, number> {
  const levels = new Map<string, number>();
  const visiting = new Set<string>();
  const visit = (id: string): number => {
    const seen = levels.get(id);
    if (seen !== undefined || visiting.has(id)) return seen ?? 0;
    visiting.add(id);
    const known = (parents.get(id) ?? []).filter((parent) => parents.has(parent));
    const level = known.length ? 1 + Math.max(...known.map(visit)) : 0;
    visiting.delete(id);
    levels.set(id, level);
    return level;
  };
  for (const id of parents.keys()) visit(id);
  return levels;
}
