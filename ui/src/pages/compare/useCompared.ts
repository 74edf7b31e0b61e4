import { useQuery } from '@tanstack/react-query';
import { getExecution, getGraph, getResults } from '../../api/calls';
import { hasEnded } from '../../states';

const LOOK_MS = 2000;

/** An execution with its nodes and outputs; one that runs is read again and again. */
export function useCompared(executionId: string) {
  return useQuery({
    queryKey: ['execution', executionId, 'compared'],
    queryFn: async () => {
      const [execution, graph, results] = await Promise.all([
        getExecution(executionId),
        getGraph(executionId),
        getResults(executionId),
      ]);
      return { execution, graph, outputs: results.outputs };
    },
    enabled: executionId !== '',
    refetchInterval: (query) =>
      query.state.data && !hasEnded(query.state.data.execution.state) ? LOOK_MS : false,
  });
}

export type Compared = NonNullable<ReturnType<typeof useCompared>['data']>;
