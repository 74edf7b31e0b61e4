import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { getHistory } from '../../api/calls';
import { type EarlierAttempt, earlierAttempts, type Span } from './spans';
import type { Run } from './useRun';

const MOST_NODES = 150;

const MOST_LINES = 500;

/** Of a small execution in which something was tried again; what is large shows only last attempts. */
export function useEarlierAttempts(run: Run, spans: Span[]): Map<string, EarlierAttempt[]> {
  const id = run.execution.execution_id;
  const retried = spans.reduce((sum, span) => sum + (span.attempt > 1 ? span.attempt : 0), 0);
  const history = useQuery({
    queryKey: ['execution', id, 'attempts', retried],
    queryFn: () => getHistory(id, 0, MOST_LINES),
    enabled: retried > 0 && spans.length <= MOST_NODES,
  });
  return useMemo(() => earlierAttempts(history.data?.items ?? []), [history.data]);
}
