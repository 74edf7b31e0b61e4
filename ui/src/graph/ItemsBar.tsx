import type { ItemCounts } from '../api/calls';
import { stateClass } from '../states';
import { endedItems } from './itemsText';

/** The items of a map as a bar: completed, failed, the rest that ended, open, and not begun. */
export function ItemsBar({ items, text }: { items: ItemCounts; text: string }) {
  const parts: [string, number][] = [
    ['COMPLETED', items.completed],
    ['FAILED', items.failed],
    ['SKIPPED', items.skipped + items.cancelled],
    ['RUNNING', items.open],
  ];
  const notBegun = Math.max(0, items.total - endedItems(items) - items.open);
  const words = parts.filter(([, count]) => count).map(([state, count]) => wordsOf(state, count));
  return (
    <span className="items-bar" role="img" aria-label={text} title={words.join(', ')}>
      {parts
        .filter(([, count]) => count > 0)
        .map(([state, count]) => (
          <span key={state} className={`share ${stateClass(state)}`} style={{ flexGrow: count }} />
        ))}
      <span style={{ flexGrow: notBegun }} />
    </span>
  );
}

function wordsOf(state: string, count: number): string {
  const word = state === 'RUNNING' ? 'open' : state.toLowerCase();
  return `${count.toLocaleString('en')} ${word}`;
}
