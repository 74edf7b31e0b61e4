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

type Props = { run: Run; selected: string | null; onSelect: (nodeId: string) => void };

/** All nodes as a list with a search: the alternative to the graph. */
export default function NodeList({ run, selected, onSelect }: Props) {
  const { store } = run;
  const version = useSyncExternalStore(store.subscribe, () => store.version);
  const [searchText, setSearchText] = useState('');
  const [states, setStates] = useState<ReadonlySet<string>>(new Set());
  const scroll = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that nodes changed
  const all = useMemo(() => store.all(), [store, version]);
  const counts = useMemo(() => countStates(all), [all]);
  const shown = useMemo(() => matchingNodes(all, searchText, states), [all, searchText, states]);
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
          value={searchText}
          onChange={(event) => setSearchText(event.target.value)}
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
      {shown.length === 0 && <Empty title="No node matches" />}
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

function matchingNodes(
  nodes: GraphNode[],
  searchText: string,
  states: ReadonlySet<string>,
): GraphNode[] {
  const text = searchText.toLowerCase();
  return nodes.filter(
    (node) =>
      (states.size === 0 || states.has(node.state)) &&
      (!text || node.id.toLowerCase().includes(text) || node.handler.toLowerCase().includes(text)),
  );
}
