import { X } from 'lucide-react';
import { type ReactNode, useEffect, useId, useRef } from 'react';
import { Button } from './Button';

type DialogProps = {
  title: string;
  onClose: () => void;
  children: ReactNode;
  actions?: ReactNode;
  wide?: boolean;
};

/**
 * The browser's own modal dialog: focus stays inside, Escape closes it, and focus goes back to
 * where it was.
 */
export function Dialog({ title, onClose, children, actions, wide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const before = useRef<Element | null>(null);
  const name = useId();
  useEffect(() => {
    const dialog = element.current;
    before.current ??= document.activeElement;
    if (dialog && !dialog.open) dialog.showModal();
    return () => {
      if (before.current instanceof HTMLElement) before.current.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      className={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={name}
      onClose={onClose}
    >
      <header className="card-head">
        <h2 id={name}>{title}</h2>
        <Button kind="quiet" icon={X} aria-label="Close" onClick={onClose} />
      </header>
      <div className="dialog-body">{children}</div>
      {actions && <footer className="dialog-actions">{actions}</footer>}
    </dialog>
  );
}
