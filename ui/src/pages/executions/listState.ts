// The rows of the list. The newest page is refetched all the time and older ones are added below.
// Rows that the user looks at must not move away from under the pointer, so while the list is
// paused new ones are counted, not shown.
import type { ExecutionPage, ListedExecution } from '../../api/calls';

export type Row = Pick<ListedExecution, 'execution_id' | 'created_at'>;
export type RowPage<T extends Row> = Pick<ExecutionPage, 'next_cursor'> & { items: T[] };

export type ListState<T extends Row> = {
  /** The filters that these rows match. */
  key: string;
  rows: T[];
  /** The cursor of the rows below the last one, or null if there are none. */
  next: string | null;
  /** The cursors of the pages below the newest one. */
  older: string[];
  newest: RowPage<T> | null;
  /** New rows that aren't shown yet. */
  waiting: number;
  /**
   * There may be more new rows than were fetched: some between them and the shown ones are missing.
   */
  gap: boolean;
};

/** A list that stays open for days must not grow without end. */
export const ROWS_MAX = 2000;

export function emptyList<T extends Row>(): ListState<T> {
  return { key: '', rows: [], next: null, older: [], newest: null, waiting: 0, gap: false };
}

export type Action<T extends Row> =
  | { type: 'newest'; key: string; page: RowPage<T>; paused: boolean }
  | { type: 'older'; key: string; cursor: string; page: RowPage<T> }
  | { type: 'again'; key: string; page: RowPage<T> }
  | { type: 'show' };

export function reduce<T extends Row>(state: ListState<T>, action: Action<T>): ListState<T> {
  if (action.type === 'show') return state.newest ? withNewest(state, state.newest) : state;
  if (action.type === 'newest') {
    if (state.key !== action.key) return firstPage(action.key, action.page);
    return action.paused ? withNewestCounted(state, action.page) : withNewest(state, action.page);
  }
  if (state.key !== action.key) return state; // a response for filters that have changed since
  if (action.type === 'again') return { ...state, rows: refreshed(state.rows, action.page.items) };
  if (state.next !== action.cursor) return state;
  const known = new Set(state.rows.map((row) => row.execution_id));
  return {
    ...state,
    rows: [...state.rows, ...action.page.items.filter((row) => !known.has(row.execution_id))],
    next: action.page.next_cursor ?? null,
    older: [...state.older, action.cursor],
  };
}

function firstPage<T extends Row>(key: string, page: RowPage<T>): ListState<T> {
  return { ...emptyList<T>(), key, rows: page.items, next: page.next_cursor ?? null, newest: page };
}

function withNewest<T extends Row>(state: ListState<T>, page: RowPage<T>): ListState<T> {
  const fresh = newRows(state.rows, page.items);
  const isGap = fresh.length === page.items.length;
  const isAll = !page.next_cursor;
  if (isAll || isGap || state.older.length === 0 || state.rows.length > ROWS_MAX) {
    return firstPage(state.key, page);
  }
  return { ...state, rows: merged(state.rows, page.items), newest: page, waiting: 0, gap: false };
}

function withNewestCounted<T extends Row>(state: ListState<T>, page: RowPage<T>): ListState<T> {
  const fresh = newRows(state.rows, page.items);
  return {
    ...state,
    rows: refreshed(state.rows, page.items),
    newest: page,
    waiting: fresh.length,
    gap: fresh.length > 0 && fresh.length === page.items.length && Boolean(page.next_cursor),
  };
}

function newRows<T extends Row>(rows: T[], items: T[]): T[] {
  const known = new Set(rows.map((row) => row.execution_id));
  return items.filter((row) => !known.has(row.execution_id));
}

/** The same rows in the same order, as they are now. */
function refreshed<T extends Row>(rows: T[], items: T[]): T[] {
  const now = new Map(items.map((row) => [row.execution_id, row]));
  return rows.map((row) => now.get(row.execution_id) ?? row);
}

/**
 * The newest page, and the older rows below it. Rows that the page should contain and doesn't no
 * longer match the filters.
 */
function merged<T extends Row>(rows: T[], items: T[]): T[] {
  const last = items.at(-1);
  if (!last) return rows;
  const read = new Set(items.map((row) => row.execution_id));
  const below = rows.filter(
    (row) => !read.has(row.execution_id) && row.created_at <= last.created_at,
  );
  return [...items, ...below];
}
