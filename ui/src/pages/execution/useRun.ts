import { useQuery } from '@tanstack/react-query';
import { type Execution, type GraphEdge, getExecution } from '../../api/calls';
import type { NodeStore } from '../../graph/nodeStore';
import { useLiveGraph } from './useLiveGraph';

/** An execution as it runs, with its nodes or those inside of an item. */
export type Run = {
  execution: Execution;
  store: NodeStore;
  edges: GraphEdge[];
  /** Of the execution, as the events have it. */
  state: string;
  live: boolean;
};

export function useRun(executionId: string) {
  const execution = useQuery({
    queryKey: ['execution', executionId],
    queryFn: () => getExecution(executionId),
  });
  const { snapshot, state, live, error, refetch } = useLiveGraph(executionId, null);
  const run: Run | undefined =
    execution.data && snapshot
      ? { execution: execution.data, store: snapshot.store, edges: snapshot.edges, state, live }
      : undefined;
  return {
    data: run,
    error: execution.error ?? error,
    refetch: () => Promise.all([execution.refetch(), refetch()]),
  };
}
