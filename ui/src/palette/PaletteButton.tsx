import { CornerDownRight } from 'lucide-react';
import { lazy, Suspense, useEffect, useState } from 'react';

const Palette = lazy(() => import('./Palette'));

/** Opens the command palette, also by Ctrl-K or Cmd-K from anywhere. */
export function PaletteButton() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      if (event.shiftKey || event.altKey) return;
      event.preventDefault();
      setOpen((before) => before || !document.querySelector('dialog[open]'));
    };
    // before the editor's own keys
    document.addEventListener('keydown', onKey, true);
    return () => document.removeEventListener('keydown', onKey, true);
  }, []);
  return (
    <>
      <button
        type="button"
        className="palette-button"
        aria-label="Go to (Ctrl K)"
        onClick={() => setOpen(true)}
      >
        <CornerDownRight size={16} aria-hidden="true" />
        <span>Go to …</span>
        <kbd>Ctrl K</kbd>
      </button>
      {isOpen && (
        <Suspense>
          <Palette onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
