import { useLiveGraph } from './useLiveGraph';
import type { Run } from './useRun';

/** What is inside of an item of a map or a round of a loop, as it runs; null is no item. */
export function useItemRun(run: Run, address: string | null) {
  const { execution, state } = run;
  const graph = useLiveGraph(execution.execution_id, address ?? undefined);
  const { snapshot, live, error, refetch } = graph;
  const itemRun: Run | undefined = snapshot
    ? { execution, store: snapshot.store, edges: snapshot.edges, state, live }
    : undefined;
  return { data: itemRun, error, refetch };
}
