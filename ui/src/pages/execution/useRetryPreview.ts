import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { type RetryPlan, retry } from '../../api/calls';
import { retryRunText } from './retryTexts';
import { useRetryOptions } from './useRetryOptions';
import type { Run } from './useRun';

export type RetryPreview = {
  plan: RetryPlan | undefined;
  error: unknown;
  /** By node: why it would run again, or null if its output is reused. */
  marks: ReadonlyMap<string, string | null> | null;
};

export function useRetryPreview(run: Run, isWanted: boolean): RetryPreview {
  const options = useRetryOptions();
  const executionId = run.execution.execution_id;
  const previewQuery = useQuery({
    queryKey: ['execution', executionId, 'retry', options],
    queryFn: () => retry(executionId, options, true),
    enabled: isWanted,
    retry: false,
  });
  const plan = isWanted ? previewQuery.data : undefined;
  const marks = useMemo(() => {
    if (!plan) return null;
    const reused = plan.keeps.map((node): [string, null] => [node, null]);
    return new Map<string, string | null>([
      ...reused,
      ...plan.runs.map((run): [string, string] => [run.node_id, retryRunText(run)]),
    ]);
  }, [plan]);
  return { plan, error: isWanted ? previewQuery.error : null, marks };
}
