// The nodes of a graph and their states. Thousands of changes a second reach only the boxes that
// are on the screen and changed.
import type { CountsEvent, GraphNode, Transition } from '../api/calls';
import { nodeHasEnded } from '../states';

/** What is not known of a node before the server has listed it. */
const NOT_LISTED = {
  handler: '',
  level: 0,
  optional: false,
  state: 'PENDING',
  reason: null,
  attempt: 0,
  error: null,
  queued_at: null,
  started_at: null,
  finished_at: null,
} satisfies Omit<GraphNode, 'id'>;
/** States in which a node has a time at which it goes on by itself, which no event says. */
const TIMED: readonly string[] = ['WAITING', 'RETRYING'];

export class NodeStore {
  private readonly byId = new Map<string, GraphNode>();
  private readonly listeners = new Set<() => void>();
  /** Ids of nodes that an event was about and that the server's graph has not listed yet. */
  private readonly notListed = new Set<string>();
  /** A new array when a node is added or listed, else the same one. */
  ids: readonly string[];
  version = 0;

  /** `under` is the item that the nodes are inside of. */
  constructor(
    nodes: readonly GraphNode[],
    private readonly under: string | null = null,
  ) {
    this.ids = nodes.map((node) => node.id);
    for (const node of nodes) this.byId.set(node.id, node);
  }

  get(id: string): GraphNode | undefined {
    return this.byId.get(id);
  }

  /** The id as a box shows it: inside of an item without the item's address. */
  nameOf(id: string): string {
    return this.under !== null && id.startsWith(`${this.under}.`)
      ? id.slice(this.under.length + 1)
      : id;
  }

  all(): GraphNode[] {
    return [...this.byId.values()];
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /**
   * Follows these events. An execution may gain nodes while it runs: a node that isn't known yet is
   * added with what the event says of it. Returns whether events were about nodes that the server
   * has yet to list: read the graph again.
   */
  apply(events: readonly Transition[]): boolean {
    let isGraphOutdated = false;
    for (const event of events) {
      if (event.node_id === null) continue;
      const node = this.byId.get(event.node_id) ?? this.addNotListed(event.node_id);
      this.byId.set(node.id, afterTransition(node, event));
      if (this.notListed.has(node.id)) isGraphOutdated = true;
    }
    this.notify();
    return isGraphOutdated;
  }

  /**
   * Takes over what the server has now. A node that is equal stays the same object, and nodes never
   * leave.
   */
  update(nodes: readonly GraphNode[]): void {
    let hasNewNodes = false;
    for (const node of nodes) {
      const before = this.byId.get(node.id);
      if (!before || this.notListed.delete(node.id)) hasNewNodes = true;
      if (!before || !isSameNode(before, node)) this.byId.set(node.id, node);
    }
    if (hasNewNodes) this.ids = [...nodes.map((node) => node.id), ...this.notListed];
    this.notify();
  }

  /** Takes over how far the items of maps and the rounds of loops are. */
  applyCounts(counts: readonly CountsEvent[]): void {
    for (const { node_id, items } of counts) {
      const node = this.byId.get(node_id);
      if (node) this.byId.set(node_id, { ...node, items, until: null });
    }
    this.notify();
  }

  /**
   * The nodes that may go on at a time that isn't known: those that have begun to wait, and loops
   * between two rounds.
   */
  withoutTimes(): GraphNode[] {
    return this.all().filter(
      ({ until, state, items, handler }) =>
        !until && TIMED.includes(state) && (!items || (handler === 'repeat' && items.open === 0)),
    );
  }

  /** Takes over only the times at which nodes go on by themselves, where the state is the same. */
  updateTimes(nodes: readonly GraphNode[]): void {
    for (const { id, state, attempt, until } of nodes) {
      const node = this.byId.get(id);
      if (node?.state === state && node.attempt === attempt && node.until !== until) {
        this.byId.set(id, { ...node, until });
      }
    }
    this.notify();
  }

  private addNotListed(id: string): GraphNode {
    const node = { ...NOT_LISTED, id };
    this.byId.set(id, node);
    this.notListed.add(id);
    this.ids = [...this.ids, id];
    return node;
  }

  private notify(): void {
    this.version += 1;
    for (const listener of this.listeners) listener();
  }
}

function isSameNode(before: GraphNode, now: GraphNode): boolean {
  const keys = Object.keys(now) as (keyof GraphNode)[];
  return keys.every((key) => isSameValue(before[key] ?? null, now[key] ?? null));
}

/** Counts of items are objects. */
function isSameValue(before: unknown, now: unknown): boolean {
  if (typeof before !== 'object' || before === null) return before === now;
  return JSON.stringify(before) === JSON.stringify(now);
}

/** The node as the engine's record would be after this line of the history. */
export function afterTransition(node: GraphNode, event: Transition): GraphNode {
  const next: GraphNode = {
    ...node,
    state: event.to,
    reason: event.reason ?? null,
    attempt: event.attempt || node.attempt,
    until: null,
  };
  if (event.to === 'QUEUED') {
    return { ...next, queued_at: event.at, started_at: null, finished_at: null };
  }
  if (event.to === 'RUNNING') return { ...next, started_at: event.at };
  if (nodeHasEnded(event.to)) return { ...next, finished_at: event.at };
  return next;
}

export function countStates(nodes: Iterable<GraphNode | undefined>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const node of nodes) {
    if (node) counts[node.state] = (counts[node.state] ?? 0) + 1;
  }
  return counts;
}
