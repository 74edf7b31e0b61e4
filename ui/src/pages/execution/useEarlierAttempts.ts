import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { getHistory } from '../../api/calls';
import { type EarlierAttempt, earlierAttempts, type Span } from './spans';
import type { Run } from './useRun';

const NODES_MAX = 150;

const HISTORY_LINES_MAX = 500;

/** The earlier attempts of an execution's nodes. A large execution shows only last attempts. */
export function useEarlierAttempts(run: Run, spans: Span[]): Map<string, EarlierAttempt[]> {
  const executionId = run.execution.execution_id;
  const retried = spans.reduce((sum, span) => sum + (span.attempt > 1 ? span.attempt : 0), 0);
  const history = useQuery({
    queryKey: ['execution', executionId, 'attempts', retried],
    queryFn: () => getHistory(executionId, 0, HISTORY_LINES_MAX),
    enabled: retried > 0 && spans.length <= NODES_MAX,
  });
  return useMemo(() => earlierAttempts(history.data?.items ?? []), [history.data]);
}
