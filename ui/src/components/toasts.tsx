// Short notes of what was done, read out by screen readers.
import { X } from 'lucide-react';
import { type ReactNode, useSyncExternalStore } from 'react';
import { messageOf } from '../api/problem';
import { Button } from './basics';

type Toast = { id: number; kind: 'done' | 'failed'; text: ReactNode };

const SHOWN_MS = 6000;
let toasts: Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

function change(next: Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function drop(id: number): void {
  change(toasts.filter((each) => each.id !== id));
}

export function toast(text: ReactNode, kind: Toast['kind'] = 'done'): void {
  count += 1;
  const id = count;
  change([...toasts.slice(-3), { id, kind, text }]);
  if (kind === 'done') setTimeout(() => drop(id), SHOWN_MS); // what failed stays until it was read
}

export function toastError(error: unknown): void {
  toast(messageOf(error), 'failed');
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((each) => (
        <div key={each.id} className={`toast ${each.kind}`}>
          <span>{each.text}</span>
          <Button kind="quiet" icon={X} aria-label="Dismiss" onClick={() => drop(each.id)} />
        </div>
      ))}
    </div>
  );
}
