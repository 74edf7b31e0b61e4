// What the lists of workers and queues say together.
import type { Orchestrator, Queue, Worker } from '../../api/calls';

export type QueueRow = Queue & {
  /** How many workers take tasks from it. */
  served: number;
  /** Tasks wait, and nobody will take them as things are. */
  isStuck: boolean;
};

/** What needs attention first: what is stuck, then what waits, then what runs. */
export function queueRows(queues: Queue[], workers: Worker[]): QueueRow[] {
  const served = new Map<string, number>();
  for (const worker of workers) for (const name of worker.queues) served.set(name, (served.get(name) ?? 0) + 1);
  const rows = queues.map((each) => {
    const count = served.get(each.queue) ?? 0;
    return { ...each, served: count, isStuck: each.waiting > 0 && (count === 0 || each.reason !== null) };
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
    while (end + 1 < sorted.length && (sorted[end + 1] as number) === (sorted[end] as number) + 1) end += 1;
    parts.push(start === end ? `${sorted[start]}` : `${sorted[start]}–${sorted[end]}`);
    start = end + 1;
  }
  return parts.join(', ');
}

export function partitionsOwned(orchestrators: Orchestrator[]): number {
  return new Set(orchestrators.flatMap((each) => each.partitions)).size;
}

/** A task that runs grows older between two looks. */
export function secondsNow(seconds: number | null, readAt: number, now: number): number | null {
  return seconds === null ? null : seconds + Math.max(0, now - readAt) / 1000;
}
