// What a graph is made of, and a store of its nodes' states: thousands of changes a second reach only the boxes that are
// on the screen and changed.
import type { GraphNode } from '../api/calls';
import type { Transition } from '../api/eventStream';
import { nodeHasEnded } from '../states';

export type NodeNow = {
  readonly id: string;
  readonly handler: string;
  readonly level: number;
  readonly optional: boolean;
  /** Empty in a workflow that isn't running. */
  readonly state: string;
  readonly reason: string | null;
  readonly attempt: number;
  readonly error: string | null;
  readonly queued_at: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
};

export type Edge = { from: string; to: string };

export class NodeStore {
  private readonly byId = new Map<string, NodeNow>();
  private readonly listeners = new Set<() => void>();
  readonly ids: string[];
  version = 0;

  constructor(nodes: readonly NodeNow[]) {
    this.ids = nodes.map((node) => node.id);
    for (const node of nodes) this.byId.set(node.id, node);
  }

  static of(nodes: readonly GraphNode[]): NodeStore {
    return new NodeStore(nodes.map(nodeNow));
  }

  get(id: string): NodeNow | undefined {
    return this.byId.get(id);
  }

  all(): NodeNow[] {
    return [...this.byId.values()];
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  apply(events: readonly Transition[]): void {
    for (const event of events) {
      const node = event.node_id === null ? undefined : this.byId.get(event.node_id);
      if (node) this.byId.set(node.id, moved(node, event));
    }
    this.tell();
  }

  /** What the server has now; whatever is equal stays the same object. */
  replace(nodes: readonly GraphNode[]): void {
    for (const each of nodes) {
      const before = this.byId.get(each.id);
      const now = nodeNow(each);
      if (!before || JSON.stringify(before) !== JSON.stringify(now)) this.byId.set(each.id, now);
    }
    this.tell();
  }

  private tell(): void {
    this.version += 1;
    for (const listener of this.listeners) listener();
  }
}

function nodeNow(node: GraphNode): NodeNow {
  return {
    id: node.id,
    handler: node.handler,
    level: node.level,
    optional: node.optional ?? false,
    state: node.state,
    reason: node.reason ?? null,
    attempt: node.attempt ?? 0,
    error: node.error ?? null,
    queued_at: node.queued_at ?? null,
    started_at: node.started_at ?? null,
    finished_at: node.finished_at ?? null,
  };
}

/** As the engine's record would be after this line of the history. */
export function moved(node: NodeNow, event: Transition): NodeNow {
  const next = { ...node, state: event.to, reason: event.reason, attempt: event.attempt || node.attempt };
  if (event.to === 'QUEUED') return { ...next, queued_at: event.at, started_at: null, finished_at: null };
  if (event.to === 'RUNNING') return { ...next, started_at: event.at };
  if (nodeHasEnded(event.to)) return { ...next, finished_at: event.at };
  return next;
}

export function countStates(nodes: Iterable<NodeNow | undefined>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const node of nodes) if (node) counts[node.state] = (counts[node.state] ?? 0) + 1;
  return counts;
}
