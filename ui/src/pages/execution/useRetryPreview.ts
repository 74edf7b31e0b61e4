import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { type RetryPlan, retry } from '../../api/calls';
import { useRetryOptions } from './useRetryOptions';
import type { Run } from './useRun';

export type RetryPreview = {
  plan: RetryPlan | undefined;
  error: unknown;
  /** By node: why it would run; null if it is kept. */
  marks: ReadonlyMap<string, string | null> | null;
};

export function useRetryPreview(run: Run, wanted: boolean): RetryPreview {
  const choice = useRetryOptions();
  const id = run.execution.execution_id;
  const asked = useQuery({
    queryKey: ['execution', id, 'retry', choice],
    queryFn: () => retry(id, choice, true),
    enabled: wanted,
    retry: false,
  });
  const plan = wanted ? asked.data : undefined;
  const marks = useMemo(() => {
    if (!plan) return null;
    const kept = plan.keeps.map((node): [string, null] => [node, null]);
    return new Map<string, string | null>([
      ...kept,
      ...plan.runs.map((each): [string, string] => [each.node_id, each.reason]),
    ]);
  }, [plan]);
  return { plan, error: wanted ? asked.error : null, marks };
}
