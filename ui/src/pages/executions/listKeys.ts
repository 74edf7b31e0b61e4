// Keyboard shortcuts of the list. What a key does for the focused element comes first: no shortcut
// fires while typing.

export type KeyAction = 'down' | 'up' | 'open' | 'select' | 'search' | 'escape' | 'help';

export const KEYS: { keys: string[]; does: string }[] = [
  { keys: ['j', '↓'], does: 'next row' },
  { keys: ['k', '↑'], does: 'previous row' },
  { keys: ['Enter'], does: 'open the execution' },
  { keys: ['x', 'Space'], does: 'select or deselect the row' },
  { keys: ['/'], does: 'search' },
  { keys: ['Escape'], does: 'clear the selection' },
  { keys: ['?'], does: 'show these keys' },
];

const ACTIONS: Record<string, KeyAction> = {
  j: 'down',
  ArrowDown: 'down',
  k: 'up',
  ArrowUp: 'up',
  Enter: 'open',
  x: 'select',
  ' ': 'select',
  '/': 'search',
  Escape: 'escape',
  '?': 'help',
};

type Pressed = {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  defaultPrevented: boolean;
};

/** Where the focus is. */
export type Focus = 'page' | 'link' | 'control' | 'checkbox' | 'typing';

export function actionOf(pressed: Pressed, focus: Focus): KeyAction | null {
  if (
    pressed.defaultPrevented ||
    pressed.ctrlKey ||
    pressed.metaKey ||
    pressed.altKey ||
    focus === 'typing'
  ) {
    return null;
  }
  const action = ACTIONS[pressed.key] ?? null;
  const pressesIt = pressed.key === ' ' || pressed.key === 'Enter';
  if (focus === 'control' && (pressesIt || pressed.key.startsWith('Arrow'))) return null;
  if (focus === 'checkbox' && pressesIt) return null;
  if (focus === 'link' && pressed.key === 'Enter') return null;
  return action;
}

const TICKED = ['checkbox', 'radio', 'button', 'submit'];

export function focusOf(element: Element | null): Focus {
  if (!element || element === document.body || element.id === 'content') return 'page';
  const name = element.tagName;
  if (name === 'INPUT') {
    return TICKED.includes((element as HTMLInputElement).type) ? 'checkbox' : 'typing';
  }
  if (name === 'TEXTAREA' || name === 'SELECT' || (element as HTMLElement).isContentEditable) {
    return 'typing';
  }
  return name === 'A' ? 'link' : 'control';
}
