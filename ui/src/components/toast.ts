// Short notes of what was done. The component Toasts shows them, and screen readers read them out.
import type { ReactNode } from 'react';
import { messageOf } from '../api/problem';

type Toast = { id: number; kind: 'done' | 'failed'; text: ReactNode };

const SHOWN_MS = 6000;

let toasts: Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

export function currentToasts(): Toast[] {
  return toasts;
}

export function subscribeToToasts(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function setToasts(next: Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

export function dismissToast(id: number): void {
  setToasts(toasts.filter((toast) => toast.id !== id));
}

export function toast(text: ReactNode, kind: Toast['kind'] = 'done'): void {
  count += 1;
  const id = count;
  setToasts([...toasts.slice(-3), { id, kind, text }]);
  // Errors stay until they are dismissed.
  if (kind === 'done') setTimeout(() => dismissToast(id), SHOWN_MS);
}

export function toastError(error: unknown): void {
  toast(messageOf(error), 'failed');
}
