// The graph of an execution, or of an item of it, as it runs: what the server had at one moment, and
// every event after it. The graph names the number of the last event that it includes, so no event
// is missed or counted twice, also after the server was unreachable.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { eventsOf, type Graph, type GraphEdge, getGraph, type Transition } from '../../api/calls';
import { follow } from '../../api/eventStream';
import { NodeStore } from '../../graph/nodeStore';
import { hasEnded } from '../../states';
import { TimesRefresh } from './timesRefresh';

type Snapshot = { store: NodeStore; edges: GraphEdge[]; seq: number; state: string };

/** While an execution gains nodes, its graph is read again at most this often. */
const GRAPH_REFETCH_MS = 500;

/** `under` is the item; null is the whole execution, undefined is nothing. */
export function useLiveGraph(executionId: string, under: string | null | undefined) {
  const queries = useQueryClient();
  const graph = useQuery({
    queryKey: ['execution', executionId, 'graph', under ?? null],
    queryFn: () => getGraph(executionId, under ?? undefined),
    enabled: under !== undefined,
    staleTime: Number.POSITIVE_INFINITY, // events bring it up to date
    refetchOnWindowFocus: false,
  });
  const [state, setState] = useState<string | null>(null);
  const [live, setLive] = useState(false);
  const snapshot = useSnapshot(under === undefined ? undefined : graph.data, under);

  useEffect(() => {
    if (!snapshot || under === undefined) return;
    const { store } = snapshot;
    setState(snapshot.state);
    if (hasEnded(snapshot.state)) return;
    const times = new TimesRefresh(executionId, under, store);
    let graphTimer: ReturnType<typeof setTimeout> | null = null;
    const refetchAll = () => {
      void queries.invalidateQueries({ queryKey: ['execution', executionId] });
    };
    const refetchGraph = () => {
      graphTimer = null;
      void queries.invalidateQueries(
        { queryKey: ['execution', executionId, 'graph', under] },
        { cancelRefetch: false },
      );
    };
    const onEvents = (events: Transition[]) => {
      const isOfGraph = ({ node_id }: Transition) => node_id !== under || store.get(node_id ?? '');
      const isGraphOutdated = store.apply(events.filter(isOfGraph));
      if (isGraphOutdated) graphTimer ??= setTimeout(refetchGraph, GRAPH_REFETCH_MS);
      times.schedule();
      const lastOfExecution = events.filter((event) => event.node_id === null).at(-1);
      if (!lastOfExecution) return;
      setState(lastOfExecution.to);
      void queries.invalidateQueries({ queryKey: ['execution', executionId], exact: true });
    };
    const stop = follow(eventsOf(executionId, under), {
      after: snapshot.seq ? String(snapshot.seq) : undefined,
      onEvents,
      onCounts: (counts) => {
        store.applyCounts(counts);
        times.schedule();
      },
      onLive: setLive,
      onEnd: () => {
        setLive(false);
        refetchAll(); // short tasks report their start only with their end: the record has it
      },
      onGap: refetchAll,
    });
    return () => {
      stop();
      times.stop();
      if (graphTimer) clearTimeout(graphTimer);
    };
  }, [snapshot, queries, executionId, under]);
  return {
    snapshot,
    state: state ?? snapshot?.state ?? '',
    live,
    error: graph.error,
    refetch: graph.refetch,
  };
}

/**
 * The store stays the same object, and so do the edges while none is added: the graph isn't laid
 * out again. Another item has a store of its own.
 */
function useSnapshot(
  graph: Graph | undefined,
  under: string | null | undefined,
): Snapshot | undefined {
  const latest = useRef<{ under: typeof under; snapshot: Snapshot } | undefined>(undefined);
  const [shown, setShown] = useState<{ under: typeof under; snapshot: Snapshot } | undefined>();
  useEffect(() => {
    if (!graph) return;
    const before = latest.current?.under === under ? latest.current?.snapshot : undefined;
    latest.current = { under, snapshot: nextSnapshot(before, graph, under) };
    setShown(latest.current);
  }, [graph, under]);
  return shown?.under === under ? shown?.snapshot : undefined;
}

function nextSnapshot(
  before: Snapshot | undefined,
  graph: Graph,
  under: string | null | undefined,
): Snapshot {
  const { seq, state, nodes, edges } = graph;
  if (!before) return { store: new NodeStore(nodes, under), edges, seq, state };
  before.store.update(nodes);
  const isSameShape = before.edges.length === edges.length;
  return { store: before.store, edges: isSameShape ? before.edges : edges, seq, state };
}
