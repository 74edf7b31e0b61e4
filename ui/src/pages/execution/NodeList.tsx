import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef, useState, useSyncExternalStore } from 'react';
import type { GraphNode } from '../../api/calls';
import { Empty } from '../../components/Empty';
import { StateBadge } from '../../components/StateBadge';
import { countStates } from '../../graph/nodeStore';
import { NODE_ORDER } from '../../states';
import { NodeRow } from './NodeRow';
import type { Run } from './useRun';

const ROW = 38;

type Props = { run: Run; selected: string | null; onSelect: (id: string) => void };

/** Every node in a list that can be searched: the graph for those who don't look at graphs. */
export default function NodeList({ run, selected, onSelect }: Props) {
  const { store } = run;
  const version = useSyncExternalStore(store.subscribe, () => store.version);
  const [wanted, setWanted] = useState('');
  const [states, setStates] = useState<ReadonlySet<string>>(new Set());
  const scroll = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that nodes changed
  const all = useMemo(() => store.all(), [store, version]);
  const counts = useMemo(() => countStates(all), [all]);
  const shown = useMemo(() => matchingNodes(all, wanted, states), [all, wanted, states]);
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW,
    overscan: 10,
  });
  const toggle = (state: string) => {
    const next = new Set(states);
    if (!next.delete(state)) next.add(state);
    setStates(next);
  };
  return (
    <div className="node-parts">
      <div className="node-filters">
        <input
          type="search"
          placeholder="Find a node or handler"
          aria-label="Find a node or handler"
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
        />
        {NODE_ORDER.filter((state) => counts[state]).map((state) => (
          <button
            key={state}
            type="button"
            className="chip"
            aria-pressed={states.has(state)}
            onClick={() => toggle(state)}
          >
            <StateBadge state={state} /> {counts[state]}
          </button>
        ))}
      </div>
      {shown.length === 0 && <Empty title="No node is like that" />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section ref={scroll} className="node-list" tabIndex={0} aria-label="Nodes">
        <ul style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((row) => {
            const node = shown[row.index] as GraphNode;
            return (
              <li key={node.id} style={{ transform: `translateY(${row.start}px)` }}>
                <NodeRow node={node} chosen={node.id === selected} onSelect={onSelect} />
              </li>
            );
          })}
        </ul>
      </section>
    </div>
  );
}

function matchingNodes(nodes: GraphNode[], wanted: string, states: ReadonlySet<string>): GraphNode[] {
  const text = wanted.toLowerCase();
  return nodes.filter(
    (node) =>
      (states.size === 0 || states.has(node.state)) &&
      (!text || node.id.toLowerCase().includes(text) || node.handler.toLowerCase().includes(text)),
  );
}
