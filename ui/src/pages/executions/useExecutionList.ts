import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useReducer, useRef, useState } from 'react';
import { type ExecutionFilters, type ListedExecution, listExecutions } from '../../api/calls';
import { useLive } from '../../api/useLive';
import { toastError } from '../../components/toast';
import { hasEnded } from '../../states';
import { type Action, emptyList, type ListState, reduce } from './listState';

const PAGE = 50;
/** Older pages with running executions change too, but are fetched less often. */
const OLDER_MS = 10_000;
const WITHOUT_STREAM_MS = 5000;

type Reducer = (
  state: ListState<ListedExecution>,
  action: Action<ListedExecution>,
) => ListState<ListedExecution>;

/**
 * Executions that match the filters, the newest first, live. While `isPaused()`, new ones are only
 * counted.
 */
export function useExecutionList(filters: ExecutionFilters, isPaused: () => boolean) {
  const queries = useQueryClient();
  const key = JSON.stringify(filters);
  const [list, dispatch] = useReducer<ListState<ListedExecution>, [Action<ListedExecution>]>(
    reduce as Reducer,
    emptyList<ListedExecution>(),
  );
  const [loadingMore, setLoadingMore] = useState(false);
  const paused = useRef(isPaused);
  paused.current = isPaused;
  const live = useLive(['executions']);
  const newest = useQuery({
    queryKey: ['executions', 'list', key],
    queryFn: () => listExecutions(JSON.parse(key) as ExecutionFilters, null, PAGE),
    refetchInterval: live ? false : WITHOUT_STREAM_MS,
  });
  useEffect(() => {
    if (newest.data) dispatch({ type: 'newest', key, page: newest.data, paused: paused.current() });
  }, [newest.data, key]);
  const read = useCallback(
    (cursor: string) =>
      queries.fetchQuery({
        queryKey: ['executions', 'older', key, cursor],
        queryFn: () => listExecutions(JSON.parse(key) as ExecutionFilters, cursor, PAGE),
        staleTime: 0,
        gcTime: 0,
      }),
    [queries, key],
  );
  const loadMore = async () => {
    const cursor = list.next;
    if (!cursor || loadingMore) return;
    setLoadingMore(true);
    try {
      dispatch({ type: 'older', key, cursor, page: await read(cursor) });
    } catch (error) {
      toastError(error);
    } finally {
      setLoadingMore(false);
    }
  };
  const isUnderWay =
    list.older.length > 0 && list.rows.slice(PAGE).some((row) => !hasEnded(row.state));
  const older = JSON.stringify(list.older);
  useEffect(() => {
    if (!isUnderWay) return;
    const refetchOlder = async () => {
      if (document.visibilityState === 'hidden') return;
      for (const cursor of JSON.parse(older) as string[]) {
        // The newest page shows if the server can't be reached.
        const page = await read(cursor).catch(() => null);
        if (page) dispatch({ type: 'again', key, page });
      }
    };
    const timer = setInterval(() => void refetchOlder(), OLDER_MS);
    return () => clearInterval(timer);
  }, [isUnderWay, older, key, read]);
  return {
    list,
    /** The rows answer the filters as they are now. */
    isCurrent: list.key === key,
    error: newest.error,
    refetch: () => void newest.refetch(),
    live,
    loadMore,
    loadingMore,
    showNew: () => dispatch({ type: 'show' }),
  };
}
