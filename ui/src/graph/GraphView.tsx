import {
  Background,
  Controls,
  MiniMap,
  type Node,
  ReactFlow,
  type ReactFlowInstance,
} from '@xyflow/react';
import { Shrink } from 'lucide-react';
import { type KeyboardEvent, useCallback, useMemo, useRef, useState } from 'react';
import type { GraphEdge } from '../api/calls';
import { Button } from '../components/Button';
import { Loading } from '../components/Loading';
import { criticalLinks, flowEdge, flowNode } from './flowElements';
import { GroupBox } from './GroupBox';
import type { Group, Item } from './groups';
import { directionFor } from './layout';
import { type Marks, MarksContext } from './marks';
import { NodeBox } from './NodeBox';
import type { NodeStore } from './nodeStore';
import { RoutedEdge } from './RoutedEdge';
import { useDrawing } from './useDrawing';
import { useFitting } from './useFitting';
import { READABLE } from './viewport';
import '@xyflow/react/dist/style.css';
import './graph.css';

type GraphViewProps = {
  store: NodeStore;
  edges: readonly GraphEdge[];
  /** A node to begin with where the graph is too large to be shown whole. */
  ofInterest?: string | null;
  onSelect?: (nodeId: string | null) => void;
} & Partial<Marks>;

const NODE_TYPES = { box: NodeBox, 'group-box': GroupBox };
const EDGE_TYPES = { routed: RoutedEdge };
const NONE: ReadonlySet<string> = new Set();
const VISIBLE_ONLY_FROM = 60;
export function GraphView({
  store,
  edges,
  selected = null,
  critical = NONE,
  retry = null,
  ofInterest = null,
  onSelect,
}: GraphViewProps) {
  const [flow, setFlow] = useState<ReactFlowInstance | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const chooseDirection = useCallback((all: readonly Item[]) => {
    const size = frame.current;
    if (!size) return 'RIGHT';
    return directionFor(all, { width: size.clientWidth, height: size.clientHeight }, READABLE);
  }, []);
  const drawing = useDrawing(store, edges, selected, chooseDirection);
  const isGrouped = drawing?.isGrouped ?? false;
  const opened = drawing?.opened ?? NONE;
  const nodes = useMemo(
    () => drawing?.items.map((item) => flowNode(item, drawing)) ?? [],
    [drawing],
  );
  const lines = useMemo(() => {
    if (!drawing) return [];
    const { links, layout, itemOf, conditions } = drawing;
    const criticalKeys = criticalLinks(critical, itemOf);
    return links.map((link) => flowEdge(link, layout, criticalKeys, conditions));
  }, [drawing, critical]);
  const marks = useMemo<Marks>(() => ({ selected, critical, retry }), [selected, critical, retry]);
  const onMoved = useFitting({ flow, frame, drawing, store, selected, ofInterest });

  const activate = (node: Node) => {
    if (node.type === 'group-box') {
      drawing?.setOpened(new Set(opened).add((node.data as { group: Group }).group.key));
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
      <div ref={frame} className="graph" aria-busy={!drawing}>
        {!drawing && <Loading what="Drawing" />}
        <ReactFlow
          nodes={nodes}
          edges={lines}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          onInit={(instance) => setFlow(instance as unknown as ReactFlowInstance)}
          onNodeClick={(_, node) => activate(node)}
          onMove={(event) => event && onMoved()}
          onPaneClick={() => onSelect?.(null)}
          onKeyDown={onKeyDown}
          onlyRenderVisibleElements={nodes.length > VISIBLE_ONLY_FROM}
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
          <Controls showInteractive={false} onZoomIn={onMoved} onZoomOut={onMoved} />
          {nodes.length > VISIBLE_ONLY_FROM / 3 && (
            <MiniMap pannable zoomable ariaLabel="Map of the graph" />
          )}
        </ReactFlow>
        {opened.size > 0 && (
          <div className="graph-tools">
            <Button icon={Shrink} onClick={() => drawing?.setOpened(new Set())}>
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
