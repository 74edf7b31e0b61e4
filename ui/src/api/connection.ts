// Whether the server can be reached. The shell shows it, and all queries are refetched when that
// changes.

let reachable = true;
const listeners = new Set<() => void>();

export function isReachable(): boolean {
  return reachable;
}

export function noteReachable(now: boolean): void {
  if (now === reachable) return;
  reachable = now;
  for (const listener of listeners) listener();
}

export function onConnection(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
