import { X } from 'lucide-react';
import { useSyncExternalStore } from 'react';
import { Button } from './Button';
import { currentToasts, dismissToast, subscribeToToasts } from './toast';

export function Toasts() {
  const toasts = useSyncExternalStore(subscribeToToasts, currentToasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {toasts.map((toast) => (
        <div key={toast.id} className={`toast ${toast.kind}`}>
          <span>{toast.text}</span>
          <Button
            kind="quiet"
            icon={X}
            aria-label="Dismiss"
            onClick={() => dismissToast(toast.id)}
          />
        </div>
      ))}
    </div>
  );
}
