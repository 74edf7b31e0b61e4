import { useInfiniteQuery } from '@tanstack/react-query';
import { listDeadLetters } from '../../api/calls';
import { useLive } from '../../api/useLive';

const PAGE = 200;

const AGAIN_MS = 10_000;

export function useDeadLetters(query: URLSearchParams) {
  const filters = {
    workflow: query.get('workflow') ?? undefined,
    handler: query.get('handler') ?? undefined,
    closed: query.has('closed') || undefined,
  };
  const deadLetters = useInfiniteQuery({
    queryKey: ['dead-letters', filters],
    queryFn: ({ pageParam }) => listDeadLetters(filters, pageParam, PAGE),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    refetchInterval: AGAIN_MS,
  });
  // All loaded pages are fetched again each time: with many of them, the interval has to do.
  const isShort = (deadLetters.data?.pages.length ?? 1) < 3;
  useLive(...(isShort ? [['dead-letters']] : []));
  return deadLetters;
}
