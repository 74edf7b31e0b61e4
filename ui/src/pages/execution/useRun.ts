// An execution as it runs: what the server had at one moment, and every event after it. The graph names the number of
// the last event that it includes, so nothing is missed and nothing counts twice, also after the server was away.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { type Execution, eventsOf, getExecution, getGraph } from '../../api/calls';
import { follow, type Transition } from '../../api/eventStream';
import { type Edge, NodeStore } from '../../graph/nodeStore';
import { hasEnded } from '../../states';

export type Run = {
  execution: Execution;
  store: NodeStore;
  edges: Edge[];
  /** Of the execution, as the events have it. */
  state: string;
  live: boolean;
};

type Loaded = { store: NodeStore; edges: Edge[]; seq: number; state: string };

export function useRun(id: string) {
  const queries = useQueryClient();
  const execution = useQuery({ queryKey: ['execution', id], queryFn: () => getExecution(id) });
  const graph = useQuery({
    queryKey: ['execution', id, 'graph'],
    queryFn: () => getGraph(id),
    staleTime: Number.POSITIVE_INFINITY, // events keep it up to date
    refetchOnWindowFocus: false,
  });
  const [state, setState] = useState<string | null>(null);
  const [live, setLive] = useState(false);
  const loaded = useLoaded(graph.data);

  useEffect(() => {
    if (!loaded) return;
    setState(loaded.state);
    if (hasEnded(loaded.state)) return;
    const refresh = () => {
      void queries.invalidateQueries({ queryKey: ['execution', id] });
    };
    const see = (events: Transition[]) => {
      loaded.store.apply(events);
      const own = events.filter((event) => event.node_id === null).at(-1);
      if (own) setState(own.to);
      if (own) void queries.invalidateQueries({ queryKey: ['execution', id], exact: true });
    };
    return follow(eventsOf(id), {
      after: loaded.seq ? String(loaded.seq) : undefined,
      onEvents: see,
      onLive: setLive,
      onEnd: () => {
        setLive(false);
        refresh(); // short tasks tell of their start only with their end: the record has it
      },
      onGap: refresh,
    });
  }, [loaded, queries, id]);

  const run: Run | undefined =
    execution.data && loaded
      ? { execution: execution.data, store: loaded.store, edges: loaded.edges, state: state ?? loaded.state, live }
      : undefined;
  return {
    data: run,
    error: execution.error ?? graph.error,
    refetch: () => Promise.all([execution.refetch(), graph.refetch()]),
  };
}

/** The graph stays the same object while only its nodes change: it isn't drawn anew. */
function useLoaded(graph: Awaited<ReturnType<typeof getGraph>> | undefined): Loaded | undefined {
  const known = useRef<Loaded | undefined>(undefined);
  const [loaded, setLoaded] = useState<Loaded | undefined>(undefined);
  useEffect(() => {
    if (!graph) return;
    const before = known.current;
    const isSame = before && before.store.ids.length === graph.nodes.length;
    if (isSame) before.store.replace(graph.nodes);
    const { store, edges } = isSame ? before : { store: NodeStore.of(graph.nodes), edges: graph.edges };
    known.current = { store, edges, seq: graph.seq, state: graph.state };
    setLoaded(known.current);
  }, [graph]);
  return loaded;
}
