import { useMemo } from 'react';
import type { GraphNode, WorkflowGraph } from '../api/calls';
import { GraphView } from './GraphView';
import { NodeStore } from './nodeStore';

const NOT_RUN = {
  state: '',
  reason: null,
  attempt: 0,
  error: null,
  queued_at: null,
  started_at: null,
  finished_at: null,
} satisfies Omit<GraphNode, keyof WorkflowGraph['nodes'][number]>;

type Props = {
  graph: WorkflowGraph;
  selected?: string | null;
  onSelect?: (nodeId: string | null) => void;
};

/** The graph of a workflow's version, without states. */
export function WorkflowGraphView({ graph, selected = null, onSelect }: Props) {
  const store = useMemo(
    () => new NodeStore(graph.nodes.map((node) => ({ ...NOT_RUN, ...node }))),
    [graph],
  );
  return (
    <GraphView
      store={store}
      edges={graph.edges}
      selected={selected}
      {...(onSelect ? { onSelect } : {})}
    />
  );
}
