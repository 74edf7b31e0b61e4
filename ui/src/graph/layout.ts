// Positions of boxes: at first in columns by level. Elk then lays out a graph of a readable size,
// in a web worker, with few crossings and edges that go around the boxes.
import type { ELK, ElkNode } from 'elkjs/lib/elk-api';
import elkWorker from 'elkjs/lib/elk-worker.min.js?url';
import type { Bundle, Item } from './groups';

export const NODE = { width: 208, height: 54 };
export const GROUP = { width: 208, height: 78 };
const GAP = { x: 52, y: 18 };
/** Of a column; a longer one goes on beside itself. */
export const ROWS = 25;

export type Point = { x: number; y: number };
export type Layout = { positions: Map<string, Point>; routes: Map<string, Point[]> };

export function sizeOf(item: Item): typeof NODE {
  return item.kind === 'node' ? NODE : GROUP;
}

export function routeKey(edge: { from: string; to: string }): string {
  return `${edge.from}\u0000${edge.to}`;
}

/** Columns by level; a long column goes on beside itself. */
export function columns(items: readonly Item[], keyOf: (item: Item) => string): Layout {
  const byLevel = new Map<number, Item[]>();
  for (const item of items) {
    const column = byLevel.get(item.level);
    if (column) column.push(item);
    else byLevel.set(item.level, [item]);
  }
  const positions = new Map<string, Point>();
  let left = 0;
  for (const level of [...byLevel.keys()].sort((a, b) => a - b)) {
    const column = byLevel.get(level) as Item[];
    const rows = Math.min(ROWS, column.length);
    const step = Math.max(...column.map((item) => sizeOf(item).height)) + GAP.y;
    column.forEach((item, index) => {
      const x = left + Math.floor(index / rows) * (NODE.width + GAP.y);
      positions.set(keyOf(item), { x, y: ((index % rows) - (rows - 1) / 2) * step });
    });
    left += Math.ceil(column.length / rows) * (NODE.width + GAP.y) - GAP.y + GAP.x;
  }
  return { positions, routes: new Map() };
}

let elk: Promise<ELK> | null = null;

async function loadElk(): Promise<ELK> {
  const { default: Elk } = await import('elkjs/lib/elk-api');
  return new Elk({ workerUrl: elkWorker });
}

const OPTIONS = {
  'elk.algorithm': 'layered',
  'elk.direction': 'RIGHT',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.spacing.nodeNode': String(GAP.y),
  'elk.layered.spacing.nodeNodeBetweenLayers': String(GAP.x),
  'elk.layered.spacing.edgeNodeBetweenLayers': '14',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
};

export async function routed(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  edges: readonly Bundle[],
): Promise<Layout> {
  elk ??= loadElk();
  const graph: ElkNode = {
    id: 'graph',
    layoutOptions: OPTIONS,
    children: items.map((item) => ({ id: keyOf(item), ...sizeOf(item) })),
    edges: edges.map((edge) => ({ id: routeKey(edge), sources: [edge.from], targets: [edge.to] })),
  };
  const result = await (await elk).layout(graph);
  const positions = new Map(
    (result.children ?? []).map((child) => [child.id, { x: child.x ?? 0, y: child.y ?? 0 }]),
  );
  const routes = new Map<string, Point[]>();
  for (const edge of result.edges ?? []) {
    const section = edge.sections?.[0];
    if (section) {
      routes.set(edge.id, [section.startPoint, ...(section.bendPoints ?? []), section.endPoint]);
    }
  }
  return { positions, routes };
}

/** A line through these points with rounded corners, as an SVG path. */
export function pathThrough(points: readonly Point[], radius = 8): string {
  const [first, ...rest] = points;
  if (!first) return '';
  let path = `M${first.x} ${first.y}`;
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    if (!next) {
      path += `L${point.x} ${point.y}`;
      return;
    }
    const before = rest[index - 1] ?? first;
    const enter = towards(point, before, radius);
    const leave = towards(point, next, radius);
    path += `L${enter.x} ${enter.y}Q${point.x} ${point.y} ${leave.x} ${leave.y}`;
  });
  return path;
}

function towards(from: Point, to: Point, lengthMax: number): Point {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const share = Math.min(lengthMax, length / 2) / length;
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
}
