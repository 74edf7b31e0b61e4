// Positions of boxes: at first in columns by level. Elk then lays out a graph of a readable size,
// in a web worker, with few crossings and edges that go around the boxes.
import type { ELK, ElkLabel, ElkNode } from 'elkjs/lib/elk-api';
import elkWorker from 'elkjs/lib/elk-worker.min.js?url';
import type { Bundle, Item } from './groups';

export const NODE = { width: 216, height: 58 };
export const GROUP = { width: 216, height: 82 };
/** Between columns, between rows, and between rows that follow each other from top to bottom. */
const GAP = { x: 52, y: 18, down: 32 };
/** Of a column; a longer one goes on beside itself. */
export const ROWS = 25;

export type Point = { x: number; y: number };
export type Layout = {
  positions: Map<string, Point>;
  routes: Map<string, Point[]>;
  /** Where the texts of edges stand, each with its top left corner. */
  labels: Map<string, Point>;
};
export type Direction = 'RIGHT' | 'DOWN';

const LABEL = { height: 20, characterWidth: 7, padding: 14 };

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
  return { positions, routes: new Map(), labels: new Map() };
}

/**
 * The direction in which more of the graph is readable: from left to right, unless a graph of this
 * shape has more room from top to bottom.
 */
export function directionFor(
  items: readonly Item[],
  frame: { width: number; height: number },
  readable: number,
): Direction {
  const counts = new Map<number, number>();
  for (const { level } of items) counts.set(level, (counts.get(level) ?? 0) + 1);
  const levels = counts.size;
  const rows = Math.max(1, ...counts.values());
  const right = Math.min(
    frame.width / (levels * (NODE.width + GAP.x)),
    frame.height / (rows * (NODE.height + GAP.y)),
  );
  const down = Math.min(
    frame.width / (rows * (NODE.width + GAP.y)),
    frame.height / (levels * (NODE.height + GAP.down)),
  );
  return right < readable && down > right ? 'DOWN' : 'RIGHT';
}

let elk: Promise<ELK> | null = null;

async function loadElk(): Promise<ELK> {
  const { default: Elk } = await import('elkjs/lib/elk-api');
  return new Elk({ workerUrl: elkWorker });
}

const OPTIONS = {
  'elk.algorithm': 'layered',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.spacing.nodeNode': String(GAP.y),
  'elk.layered.spacing.edgeNodeBetweenLayers': '12',
  'elk.edgeLabels.placement': 'CENTER',
  'elk.spacing.edgeLabel': '0',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
};

export async function routed(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  edges: readonly Bundle[],
  labels: ReadonlyMap<string, string>,
  direction: Direction,
): Promise<Layout> {
  elk ??= loadElk();
  const graph: ElkNode = {
    id: 'graph',
    layoutOptions: {
      ...OPTIONS,
      'elk.direction': direction,
      'elk.layered.spacing.nodeNodeBetweenLayers': String(direction === 'DOWN' ? GAP.down : GAP.x),
    },
    children: items.map((item) => ({ id: keyOf(item), ...sizeOf(item) })),
    edges: edges.map((edge) => ({
      id: routeKey(edge),
      sources: [edge.from],
      targets: [edge.to],
      labels: labelsOf(labels.get(routeKey(edge))),
    })),
  };
  const result = await (await elk).layout(graph);
  const positions = new Map(
    (result.children ?? []).map((child) => [child.id, { x: child.x ?? 0, y: child.y ?? 0 }]),
  );
  const routes = new Map<string, Point[]>();
  const places = new Map<string, Point>();
  for (const edge of result.edges ?? []) {
    const label = edge.labels?.[0];
    if (label) places.set(edge.id, { x: label.x ?? 0, y: label.y ?? 0 });
    const section = edge.sections?.[0];
    if (section) {
      routes.set(edge.id, [section.startPoint, ...(section.bendPoints ?? []), section.endPoint]);
    }
  }
  return { positions, routes, labels: places };
}

function labelsOf(text: string | undefined): ElkLabel[] {
  if (!text) return [];
  const width = text.length * LABEL.characterWidth + LABEL.padding;
  return [{ text, width, height: LABEL.height }];
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
