// An execution as it runs: what the server had at one moment, and every event after it. The graph
// names the number of the last event that it includes, so no event is missed or counted twice, also
// after the server was unreachable.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import {
  type Execution,
  eventsOf,
  type Graph,
  type GraphEdge,
  getExecution,
  getGraph,
  type Transition,
} from '../../api/calls';
import { follow } from '../../api/eventStream';
import { NodeStore } from '../../graph/nodeStore';
import { hasEnded } from '../../states';

export type Run = {
  execution: Execution;
  store: NodeStore;
  edges: GraphEdge[];
  /** Of the execution, as the events have it. */
  state: string;
  live: boolean;
};

type Snapshot = { store: NodeStore; edges: GraphEdge[]; seq: number; state: string };

/** While an execution gains nodes, its graph is read again at most this often. */
const GRAPH_REFETCH_MS = 500;

export function useRun(executionId: string) {
  const queries = useQueryClient();
  const execution = useQuery({
    queryKey: ['execution', executionId],
    queryFn: () => getExecution(executionId),
  });
  const graph = useQuery({
    queryKey: ['execution', executionId, 'graph'],
    queryFn: () => getGraph(executionId),
    staleTime: Number.POSITIVE_INFINITY, // events bring it up to date
    refetchOnWindowFocus: false,
  });
  const [state, setState] = useState<string | null>(null);
  const [live, setLive] = useState(false);
  const snapshot = useSnapshot(graph.data);

  useEffect(() => {
    if (!snapshot) return;
    setState(snapshot.state);
    if (hasEnded(snapshot.state)) return;
    let graphTimer: ReturnType<typeof setTimeout> | null = null;
    const refetchAll = () => {
      void queries.invalidateQueries({ queryKey: ['execution', executionId] });
    };
    const refetchGraph = () => {
      graphTimer = null;
      void queries.invalidateQueries(
        { queryKey: ['execution', executionId, 'graph'] },
        { cancelRefetch: false },
      );
    };
    const onEvents = (events: Transition[]) => {
      const isGraphOutdated = snapshot.store.apply(events);
      if (isGraphOutdated) graphTimer ??= setTimeout(refetchGraph, GRAPH_REFETCH_MS);
      const lastOfExecution = events.filter((event) => event.node_id === null).at(-1);
      if (!lastOfExecution) return;
      setState(lastOfExecution.to);
      void queries.invalidateQueries({ queryKey: ['execution', executionId], exact: true });
    };
    const stop = follow(eventsOf(executionId), {
      after: snapshot.seq ? String(snapshot.seq) : undefined,
      onEvents,
      onLive: setLive,
      onEnd: () => {
        setLive(false);
        refetchAll(); // short tasks report their start only with their end: the record has it
      },
      onGap: refetchAll,
    });
    return () => {
      stop();
      if (graphTimer) clearTimeout(graphTimer);
    };
  }, [snapshot, queries, executionId]);

  const run: Run | undefined =
    execution.data && snapshot
      ? {
          execution: execution.data,
          store: snapshot.store,
          edges: snapshot.edges,
          state: state ?? snapshot.state,
          live,
        }
      : undefined;
  return {
    data: run,
    error: execution.error ?? graph.error,
    refetch: () => Promise.all([execution.refetch(), graph.refetch()]),
  };
}

/**
 * The store stays the same object, and so do the edges while none is added: the graph isn't laid
 * out again.
 */
function useSnapshot(graph: Graph | undefined): Snapshot | undefined {
  const latest = useRef<Snapshot | undefined>(undefined);
  const [snapshot, setSnapshot] = useState<Snapshot | undefined>(undefined);
  useEffect(() => {
    if (!graph) return;
    latest.current = nextSnapshot(latest.current, graph);
    setSnapshot(latest.current);
  }, [graph]);
  return snapshot;
}

function nextSnapshot(before: Snapshot | undefined, graph: Graph): Snapshot {
  const { seq, state, nodes, edges } = graph;
  if (!before) return { store: new NodeStore(nodes), edges, seq, state };
  before.store.update(nodes);
  const isSameShape = before.edges.length === edges.length;
  return { store: before.store, edges: isSameShape ? before.edges : edges, seq, state };
}
