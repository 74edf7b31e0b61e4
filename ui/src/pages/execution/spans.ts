// When each node waited and ran.
import type { GraphNode, HistoryItem } from '../../api/calls';

export type Span = {
  id: string;
  state: string;
  queued: number | null;
  from: number;
  to: number | null;
  attempt: number;
};

/**
 * The nodes that were queued or ran, in the order in which they began. Times are in milliseconds.
 */
export function spansOf(nodes: readonly GraphNode[]): Span[] {
  const spans: Span[] = [];
  for (const node of nodes) {
    if (node.state === 'SKIPPED') continue;
    const began = node.started_at ?? node.queued_at ?? node.finished_at;
    if (!began) continue;
    spans.push({
      id: node.id,
      state: node.state,
      queued: node.queued_at ? Date.parse(node.queued_at) : null,
      from: Date.parse(began),
      to: node.finished_at ? Date.parse(node.finished_at) : null,
      attempt: node.attempt,
    });
  }
  return spans.sort(
    (a, b) =>
      (a.queued ?? a.from) - (b.queued ?? b.from) || a.from - b.from || a.id.localeCompare(b.id),
  );
}

/**
 * Where an axis has its lines, at round times: steps of 1, 2 or 5 times a power of ten of
 * milliseconds.
 */
export function ticks(lengthMs: number, about = 6): number[] {
  if (lengthMs <= 0) return [0];
  const rough = lengthMs / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [1, 2, 5, 10].map((factor) => factor * power);
  const step = steps.find((candidate) => candidate >= rough) ?? rough;
  const times: number[] = [];
  for (let at = 0; at <= lengthMs; at += step) times.push(at);
  return times;
}

export type EarlierAttempt = { from: number; to: number };

/**
 * By node: when the attempts before the last one ran. An attempt that reported no start began when
 * it was queued.
 */
export function earlierAttempts(history: readonly HistoryItem[]): Map<string, EarlierAttempt[]> {
  const byNode = new Map<string, EarlierAttempt[]>();
  const began = new Map<string, number>();
  for (const { node_id: node, to, at } of history) {
    if (node === null) continue;
    if (to === 'QUEUED' || to === 'RUNNING') began.set(node, Date.parse(at));
    if (to === 'RETRYING') {
      const attempts = byNode.get(node) ?? [];
      attempts.push({ from: began.get(node) ?? Date.parse(at), to: Date.parse(at) });
      byNode.set(node, attempts);
    }
  }
  return byNode;
}
