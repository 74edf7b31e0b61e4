// The UI's state is in the address: the page, the filters, the node. So every view can be sent as a
// link.

import { PREFIX } from './prefix';

export const BASE = `${PREFIX}/ui`;
const listeners = new Set<() => void>();
window.addEventListener('popstate', notifyListeners);

function notifyListeners(): void {
  for (const listener of listeners) listener();
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function navigate(to: string, { replace = false } = {}): void {
  const target = BASE + to;
  if (target === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', target);
  else history.pushState(null, '', target);
  notifyListeners();
}
