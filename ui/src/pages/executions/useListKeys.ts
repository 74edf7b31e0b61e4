import { type RefObject, useEffect, useRef, useState } from 'react';
import { navigate } from '../../routing/navigation';
import { paths } from '../../routing/paths';
import { actionOf, focusOf, type KeyAction } from './listKeys';

type Handlers = {
  /** The element that contains the rows; each row has a link with `data-row`. */
  list: RefObject<HTMLElement | null>;
  onSelect: (executionId: string, isRange: boolean) => void;
  onSearch: () => void;
  onEscape: () => void;
  onHelp: () => void;
};

/**
 * Keyboard shortcuts for a list. The cursor is the focus itself, on a row's link, so that screen
 * readers follow it.
 */
export function useListKeys(handlers: Handlers) {
  const [cursor, setCursor] = useState<string | null>(null);
  const latest = useRef({ handlers, cursor });
  latest.current = { handlers, cursor };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (document.querySelector('dialog[open]')) return;
      const action = actionOf(event, focusOf(document.activeElement));
      if (action && perform(action, latest.current.handlers, latest.current.cursor)) {
        event.preventDefault();
      }
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
  return { cursor, setCursor };
}

/**
 * Returns whether the key was used. If not, the browser does what the key does anyway, such as
 * scroll.
 */
function perform(action: KeyAction, handlers: Handlers, cursor: string | null): boolean {
  const links = [...(handlers.list.current?.querySelectorAll<HTMLElement>('[data-row]') ?? [])];
  const index = links.findIndex((link) => link.dataset.row === cursor);
  switch (action) {
    case 'down':
    case 'up': {
      const next = action === 'down' ? index + 1 : index - 1;
      links[Math.max(0, next)]?.focus();
      return links.length > 0;
    }
    case 'open':
      if (index < 0 || !cursor) return false;
      navigate(paths.execution(cursor));
      return true;
    case 'select':
      if (index < 0 || !cursor) return false;
      handlers.onSelect(cursor, false);
      return true;
    case 'search':
      handlers.onSearch();
      return true;
    case 'escape':
      handlers.onEscape();
      return true;
    case 'help':
      handlers.onHelp();
      return true;
  }
}
