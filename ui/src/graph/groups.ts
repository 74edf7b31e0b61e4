// A graph of any size as a few items: nodes, and groups of them that can be opened. Nodes stand in
// one order, by level; a group is a piece of that order. A piece of many levels opens into pieces
// of fewer, a level into its nodes, a very wide level into parts of it. So 10,000 nodes in a row,
// in one level or in a square all begin as about twenty boxes.

/** From here on a graph is shown in groups. */
export const NODES_MAX = 250;
export const EDGES_MAX = 1000;
const PIECES_MAX = 20;
const LEVEL_NODES_MAX = 150;

export type Group = { key: string; start: number; end: number; low: number; high: number };
export type Item =
  | { kind: 'node'; index: number; level: number }
  | { kind: 'group'; group: Group; level: number };

export class Grouping {
  /** Positions to indexes of nodes. */
  readonly order: number[];
  /** Where each level begins in the order; one more at the end. */
  private readonly starts: number[];
  private readonly position: number[];

  constructor(private readonly levels: readonly number[]) {
    this.order = levels
      .map((_, index) => index)
      .sort((a, b) => levelAt(levels, a) - levelAt(levels, b) || a - b);
    const depth = levels.reduce((most, level) => Math.max(most, level + 1), 0);
    this.starts = new Array<number>(depth + 1).fill(0);
    for (const level of levels) this.starts[level + 1] = (this.starts[level + 1] ?? 0) + 1;
    for (let level = 0; level < depth; level += 1) {
      this.starts[level + 1] = this.start(level + 1) + this.start(level);
    }
    this.position = new Array<number>(levels.length).fill(0);
    this.order.forEach((index, position) => {
      this.position[index] = position;
    });
  }

  /** The boxes to draw when these groups are open. */
  items(opened: ReadonlySet<string>): Item[] {
    const items: Item[] = [];
    const visit = (group: Group) => {
      if (group.end - group.start === 1) items.push(this.node(group.start));
      else if (group.key !== ROOT && !opened.has(group.key)) {
        items.push({ kind: 'group', group, level: group.low });
      } else {
        for (const piece of this.pieces(group)) visit(piece);
      }
    };
    if (this.order.length) visit(this.root());
    return items;
  }

  /** The keys of the groups that contain a node, from the outside in. */
  groupsAround(index: number): string[] {
    const position = this.position[index] ?? 0;
    const keys: string[] = [];
    let group = this.root();
    while (group.end - group.start > 1) {
      keys.push(group.key);
      group = this.pieces(group).find(
        (piece) => piece.start <= position && position < piece.end,
      ) as Group;
    }
    return keys;
  }

  members(group: Group): number[] {
    return this.order.slice(group.start, group.end);
  }

  private root(): Group {
    return { key: ROOT, start: 0, end: this.order.length, low: 0, high: this.starts.length - 2 };
  }

  private node(position: number): Item {
    const index = this.order[position] as number;
    return { kind: 'node', index, level: levelAt(this.levels, index) };
  }

  private start(level: number): number {
    return this.starts[level] as number;
  }

  private pieces(group: Group): Group[] {
    const levels = group.high - group.low + 1;
    if (levels > 1) {
      const step = Math.ceil(levels / PIECES_MAX);
      return range(group.low, group.high + 1, step).map((low) => {
        const high = Math.min(low + step - 1, group.high);
        return this.group(this.start(low), this.start(high + 1), low, high);
      });
    }
    const size = group.end - group.start;
    const step = size <= LEVEL_NODES_MAX ? 1 : Math.ceil(size / PIECES_MAX);
    return range(group.start, group.end, step).map((start) =>
      this.group(start, Math.min(start + step, group.end), group.low, group.high),
    );
  }

  private group(start: number, end: number, low: number, high: number): Group {
    return { key: `${start}-${end}-${low}-${high}`, start, end, low, high };
  }
}

const ROOT = 'root';

function levelAt(levels: readonly number[], index: number): number {
  return levels[index] as number;
}

function range(from: number, to: number, step: number): number[] {
  const numbers: number[] = [];
  for (let number = from; number < to; number += step) numbers.push(number);
  return numbers;
}

export function groupName(group: Group): string {
  return group.low === group.high
    ? `Level ${group.low + 1}`
    : `Levels ${group.low + 1}–${group.high + 1}`;
}

export type Bundle = { from: string; to: string; count: number };

/** Edges between items: all edges between the nodes of two items are one. */
export function bundles(
  edges: readonly { from: string; to: string }[],
  itemOf: ReadonlyMap<string, string>,
): Bundle[] {
  const byKey = new Map<string, Bundle>();
  for (const edge of edges) {
    const from = itemOf.get(edge.from);
    const to = itemOf.get(edge.to);
    if (!from || !to || from === to) continue;
    const key = `${from}\u0000${to}`;
    const bundle = byKey.get(key);
    if (bundle) bundle.count += 1;
    else byKey.set(key, { from, to, count: 1 });
  }
  return [...byKey.values()];
}
