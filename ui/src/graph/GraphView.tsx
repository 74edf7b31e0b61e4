import {
  Background,
  Controls,
  MiniMap,
  type Node,
  ReactFlow,
  type ReactFlowInstance,
} from '@xyflow/react';
import { Shrink } from 'lucide-react';
import {
  type CSSProperties,
  type KeyboardEvent,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import type { GraphEdge } from '../api/calls';
import { Button } from '../components/Button';
import { criticalLinks, flowEdge, flowNode } from './flowElements';
import { GroupBox } from './GroupBox';
import type { Group, Item } from './groups';
import { type Marks, MarksContext } from './marks';
import { NodeBox } from './NodeBox';
import type { NodeStore } from './nodeStore';
import { RoutedEdge } from './RoutedEdge';
import { useDrawing } from './useDrawing';
import { bringIntoView, showBeginning } from './viewport';
import '@xyflow/react/dist/style.css';
import './graph.css';

type GraphViewProps = {
  store: NodeStore;
  edges: readonly GraphEdge[];
  onSelect?: (nodeId: string | null) => void;
} & Partial<Marks>;

const NODE_TYPES = { box: NodeBox, 'group-box': GroupBox };
const EDGE_TYPES = { routed: RoutedEdge };
const NONE: ReadonlySet<string> = new Set();
const VISIBLE_ONLY_FROM = 60;
/** The height of a grouped graph, in rows: there is room for groups that are opened. */
const GROUPED_ROWS = 8;

export function GraphView({
  store,
  edges,
  selected = null,
  critical = NONE,
  retry = null,
  onSelect,
}: GraphViewProps) {
  const [flow, setFlow] = useState<ReactFlowInstance | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const drawn = useDrawing(store, edges, selected);
  const { items, links, layout, itemOf, opened, setOpened, isGrouped } = drawn;
  const nodes = useMemo(() => items.map((item) => flowNode(item, drawn)), [items, drawn]);
  const lines = useMemo(() => {
    const criticalKeys = criticalLinks(critical, itemOf);
    return links.map((link) => flowEdge(link, layout, criticalKeys));
  }, [links, layout, critical, itemOf]);
  const marks = useMemo<Marks>(() => ({ selected, critical, retry }), [selected, critical, retry]);

  // Opening a group leaves the viewport where it is; another graph or a new layout moves it to the
  // beginning.
  const arranged = isGrouped ? store : layout;
  const positions = useRef(layout.positions);
  positions.current = layout.positions;
  useEffect(() => {
    if (arranged && flow && frame.current) {
      void showBeginning(flow, positions.current, frame.current);
    }
  }, [flow, arranged]);
  const selectedPosition =
    selected === null ? undefined : layout.positions.get(itemOf.get(selected) ?? '');
  useEffect(() => {
    if (flow && frame.current && selectedPosition) {
      bringIntoView(flow, selectedPosition, frame.current);
    }
  }, [flow, selectedPosition]);

  const rows = useMemo(() => (isGrouped ? GROUPED_ROWS : rowsOf(items)), [isGrouped, items]);
  const activate = (node: Node) => {
    if (node.type === 'group-box') {
      setOpened(new Set(opened).add((node.data as { group: Group }).group.key));
    } else {
      onSelect?.((node.data as { id: string }).id);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    const id = (event.target as HTMLElement).closest<HTMLElement>('.react-flow__node')?.dataset.id;
    const node = nodes.find((candidate) => candidate.id === id);
    if (!node) return;
    event.preventDefault();
    activate(node);
  };
  return (
    <MarksContext value={marks}>
      <div ref={frame} className="graph" style={{ '--rows': rows } as CSSProperties}>
        <ReactFlow
          nodes={nodes}
          edges={lines}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          onInit={(instance) => setFlow(instance as unknown as ReactFlowInstance)}
          onNodeClick={(_, node) => activate(node)}
          onPaneClick={() => onSelect?.(null)}
          onKeyDown={onKeyDown}
          onlyRenderVisibleElements={items.length > VISIBLE_ONLY_FROM}
          nodesDraggable={false}
          nodesConnectable={false}
          elementsSelectable={false}
          nodesFocusable
          edgesFocusable={false}
          minZoom={0.08}
          maxZoom={1.6}
          zoomOnDoubleClick={false}
          ariaLabelConfig={{ 'node.a11yDescription.default': 'Press Enter to open it' }}
        >
          <Background gap={22} size={1} />
          <Controls showInteractive={false} />
          {items.length > VISIBLE_ONLY_FROM / 3 && (
            <MiniMap pannable zoomable ariaLabel="Map of the graph" />
          )}
        </ReactFlow>
        {opened.size > 0 && (
          <div className="graph-tools">
            <Button icon={Shrink} onClick={() => setOpened(new Set())}>
              Close all groups
            </Button>
          </div>
        )}
        {isGrouped && opened.size === 0 && (
          <p className="graph-note">
            {`${store.ids.length.toLocaleString()} nodes, grouped by level. `}
            Click a group to open it.
          </p>
        )}
      </div>
    </MarksContext>
  );
}

/** The largest number of boxes in a column. */
function rowsOf(items: readonly Item[]): number {
  const counts = new Map<number, number>();
  for (const { level } of items) counts.set(level, (counts.get(level) ?? 0) + 1);
  return Math.max(1, ...counts.values());
}
