// When nodes that wait go on by themselves: events don't say it, so the graph is read again.
import { type GraphNode, getGraph } from '../../api/calls';
import type { NodeStore } from '../../graph/nodeStore';

/** At most this often; of a large graph, less often. */
const REFRESH_MS = 500;
const REFRESH_LARGE_MS = 5000;
const LARGE_NODES = 250;
/** A node that waits for somebody may have no time. */
const TRIES_MAX = 2;

/** Reads the times of a graph again after nodes have begun to wait. */
export class TimesRefresh {
  private timer: ReturnType<typeof setTimeout> | null = null;
  private isStopped = false;
  /** By wait: how often its time was looked for. */
  private readonly tries = new Map<string, number>();

  constructor(
    private readonly executionId: string,
    private readonly under: string | null,
    private readonly store: NodeStore,
  ) {}

  /** To be called after events. */
  schedule(): void {
    if (this.isStopped || this.timer || this.waitsToLookFor().length === 0) return;
    const isLarge = this.store.ids.length > LARGE_NODES;
    this.timer = setTimeout(() => void this.refresh(), isLarge ? REFRESH_LARGE_MS : REFRESH_MS);
  }

  stop(): void {
    this.isStopped = true;
    if (this.timer) clearTimeout(this.timer);
  }

  private waitsToLookFor(): string[] {
    return this.store
      .withoutTimes()
      .map(waitOf)
      .filter((wait) => (this.tries.get(wait) ?? 0) < TRIES_MAX);
  }

  private async refresh(): Promise<void> {
    for (const wait of this.waitsToLookFor()) {
      this.tries.set(wait, (this.tries.get(wait) ?? 0) + 1);
    }
    try {
      const graph = await getGraph(this.executionId, this.under ?? undefined);
      if (this.isStopped) return;
      this.store.updateTimes(graph.nodes);
    } catch {
      // The stream notices too that the server is away, and reads everything again.
    }
    this.timer = null;
    this.schedule();
  }
}

/** One wait of a node: an attempt, or the pause before a round. */
function waitOf({ id, state, attempt, items }: GraphNode): string {
  return JSON.stringify([id, state, attempt, items?.total]);
}
