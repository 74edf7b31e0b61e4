// Queues together with the workers that serve them.
import type { Orchestrator, Queue, Worker } from '../../api/calls';

export type QueueRow = Queue & {
  /** How many workers serve the queue. */
  served: number;
  /** Tasks wait, and no running worker can take them. */
  isStuck: boolean;
};

/** The queues that need attention first: stuck ones, then by waiting and by running tasks. */
export function queueRows(queues: Queue[], workers: Worker[]): QueueRow[] {
  const served = new Map<string, number>();
  for (const name of workers.flatMap((worker) => worker.queues)) {
    served.set(name, (served.get(name) ?? 0) + 1);
  }
  const rows = queues.map((queue) => {
    const count = served.get(queue.queue) ?? 0;
    return {
      ...queue,
      served: count,
      isStuck: queue.waiting > 0 && (count === 0 || queue.reason !== null),
    };
  });
  return rows.sort(
    (a, b) =>
      Number(b.isStuck) - Number(a.isStuck) ||
      b.waiting - a.waiting ||
      b.running - a.running ||
      a.queue.localeCompare(b.queue),
  );
}

/** `0–3, 6`: partitions as people write them. */
export function rangesText(numbers: number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let start = 0; start < sorted.length; ) {
    let end = start;
    while (end + 1 < sorted.length && (sorted[end + 1] as number) === (sorted[end] as number) + 1)
      end += 1;
    parts.push(start === end ? `${sorted[start]}` : `${sorted[start]}–${sorted[end]}`);
    start = end + 1;
  }
  return parts.join(', ');
}

export function partitionsOwned(orchestrators: Orchestrator[]): number {
  return new Set(orchestrators.flatMap((orchestrator) => orchestrator.partitions)).size;
}

/** How long a task has been running now, when it was `seconds` at `readAt`. */
export function secondsNow(seconds: number | null, readAt: number, now: number): number | null {
  return seconds === null ? null : seconds + Math.max(0, now - readAt) / 1000;
}
