// Sorting the statistics of nodes. Without a sort, and among equal rows, the order is that of the
// plan.
import type { NodeStats } from '../../api/calls';

export type Column = Exclude<keyof NodeStats, 'failed'>;
export type Sort = { column: Column; isDown: boolean } | null;

export const COLUMNS: { column: Column; label: string; isNumber: boolean; title?: string }[] = [
  { column: 'node_id', label: 'Node', isNumber: false },
  { column: 'handler', label: 'Handler', isNumber: false },
  { column: 'count', label: 'Runs', isNumber: true, title: 'Runs that completed or failed' },
  { column: 'skipped', label: 'Skipped', isNumber: true },
  { column: 'failure_rate', label: 'Failure rate', isNumber: true },
  {
    column: 'attempts',
    label: 'Attempts',
    isNumber: true,
    title: 'Over all runs: more than runs means retries',
  },
  {
    column: 'p50_seconds',
    label: 'p50',
    isNumber: true,
    title: 'Half of the runs took at most this long',
  },
  {
    column: 'p95_seconds',
    label: 'p95',
    isNumber: true,
    title: '95 % of the runs took at most this long',
  },
];

/** `-count` in the address is the column count, the largest first. */
export function readSort(text: string | null): Sort {
  const isDown = text?.startsWith('-') ?? false;
  const column = COLUMNS.find((candidate) => candidate.column === text?.replace(/^-/, ''))?.column;
  return column ? { column, isDown } : null;
}

/**
 * The sort after a click on a column: first its best order, then the other one, then the plan's.
 */
export function nextSort(sort: Sort, column: Column): string | null {
  const isNumber = COLUMNS.find((candidate) => candidate.column === column)?.isNumber ?? false;
  const text = (isDown: boolean) => (isDown ? `-${column}` : column);
  if (sort?.column !== column) return text(isNumber);
  return sort.isDown === isNumber ? text(!isNumber) : null;
}

/** The rows in order. Rows without a value come last in both directions. */
export function sortedStats<T extends NodeStats>(rows: T[], sort: Sort): T[] {
  if (!sort) return rows;
  const { column, isDown } = sort;
  return [...rows].sort((a, b) => {
    const left = a[column];
    const right = b[column];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    const order =
      typeof left === 'string' ? left.localeCompare(String(right)) : left - Number(right);
    return isDown ? -order : order;
  });
}
