// Whether the server answers: the shell says so when it doesn't, and everything that is shown is read again after.

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
