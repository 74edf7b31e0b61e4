// What a retry would do, in words.
import type { RetryRun } from '../../api/calls';

const NAMED_MAX = 3;
const number = (count: number) => count.toLocaleString('en');

/**
 * `13 of 10,000 items run: each[17], each[20], each[31], …; 2 new` or, without items, the reason.
 */
export function retryRunText({ reason, items }: Pick<RetryRun, 'reason' | 'items'>): string {
  if (!items) return reason;
  const total = items.runs + items.keeps;
  const named = items.sample.slice(0, NAMED_MAX).join(', ');
  const rest = items.runs > Math.min(NAMED_MAX, items.sample.length) ? ', …' : '';
  const names = named && items.runs ? `: ${named}${rest}` : '';
  if (items.decided_again) {
    return `its list is made again; ${number(items.keeps)} items are kept by their identity`;
  }
  const changes = listChanges(items).join(', ');
  const end = changes && `; ${changes}`;
  return `${number(items.runs)} of ${number(total)} items run${names}${end}`;
}

/** How a map's list is another one than before: `2 new`, `1 gone`. */
function listChanges(items: NonNullable<RetryRun['items']>): string[] {
  const changes: string[] = [];
  if (items.new) changes.push(`${number(items.new)} new`);
  if (items.gone) changes.push(`${number(items.gone)} gone`);
  return changes;
}

/** Whether a map or a loop is among what runs, so that it can be asked which items. */
export function hasItems(runs: readonly Pick<RetryRun, 'items'>[]): boolean {
  return runs.some(({ items }) => items !== undefined);
}

/** The nodes of which there is more to say than that they run: items, waits. */
export function remarkable(runs: readonly RetryRun[]): RetryRun[] {
  return runs.filter(
    ({ items, reason }) => items || reason.startsWith('waits again') || reason.startsWith('asks '),
  );
}
