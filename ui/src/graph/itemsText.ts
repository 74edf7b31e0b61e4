// How far a map or a loop is, in words.
import type { ItemCounts } from '../api/calls';

const number = (count: number) => count.toLocaleString('en');

export function endedItems({ completed, failed, skipped, cancelled }: ItemCounts): number {
  return completed + failed + skipped + cancelled;
}

/** `9,987 of 10,000, 13 failed`; of a loop `round 3` while it runs, then `3 rounds`. */
export function itemsText(items: ItemCounts, handler: string): string {
  const failed = items.failed ? `, ${number(items.failed)} failed` : '';
  if (handler !== 'repeat')
    return `${number(endedItems(items))} of ${number(items.total)}${failed}`;
  const rounds = endedItems(items) + items.open;
  if (items.open) return `round ${number(rounds)}${failed}`;
  return `${number(rounds)} ${rounds === 1 ? 'round' : 'rounds'}${failed}`;
}
