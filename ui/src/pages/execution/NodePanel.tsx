import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { getNode, type NodeDetail } from '../../api/calls';
import { Button } from '../../components/Button';
import { CopyButton } from '../../components/CopyButton';
import { Loaded } from '../../components/Loaded';
import { StateBadge } from '../../components/StateBadge';
import { Tabs } from '../../components/Tabs';
import { nodeHasEnded } from '../../states';
import { NodeItems } from './items/NodeItems';
import { NodeConfig } from './NodeConfig';
import { NodeLogs } from './NodeLogs';
import { NodeOutput } from './NodeOutput';
import { NodeSummary } from './NodeSummary';
import { RetryFromButton } from './RetryFromButton';
import type { Run } from './useRun';

const TABS = [
  { id: 'summary', label: 'Summary' },
  { id: 'output', label: 'Output' },
  { id: 'config', label: 'Config' },
  { id: 'logs', label: 'Logs' },
];
const ITEMS = { id: 'items', label: 'Items' };
const ROUNDS = { id: 'items', label: 'Rounds' };
const LOOK_MS = 1500;
/** States that change without an event: workers report the start of a short task with its end. */
const LOOKED_AT: readonly string[] = ['QUEUED', 'RUNNING'];

/** The details of one node, fetched again whenever its state changes. */
export function NodePanel({
  run,
  nodeId,
  item,
  onOpenItem,
  onClose,
}: {
  run: Run;
  nodeId: string;
  /** The item whose graph is open. */
  item: string | null;
  onOpenItem: (address: string) => void;
  onClose: () => void;
}) {
  const node = useSyncExternalStore(run.store.subscribe, () => run.store.get(nodeId));
  const [chosenTab, setTab] = useState<string | null>(null);
  const tab = chosenTab ?? (node?.items ? 'items' : 'summary');
  const panel = useRef<HTMLElement>(null);
  const state = node?.state ?? '';
  const detail = useQuery({
    queryKey: ['execution', run.execution.execution_id, 'node', nodeId, state, node?.attempt],
    queryFn: () => getNode(run.execution.execution_id, nodeId),
    placeholderData: (before: NodeDetail | undefined) => before,
    refetchInterval: ({ state: { data } }) => {
      // An item of a map isn't among the nodes of a graph, so no event says that it has ended.
      const isOpen = node ? LOOKED_AT.includes(state) : data && !nodeHasEnded(data.state);
      return isOpen ? LOOK_MS : false;
    },
  });
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.focus();
    return () => {
      // The focus was inside of the panel: it goes back to where the node was opened from.
      if (document.activeElement === document.body && before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <aside
      ref={panel}
      className="card node-panel"
      aria-label={`Node ${nodeId}`}
      tabIndex={-1}
      onKeyDown={(event) => event.key === 'Escape' && onClose()}
    >
      <header className="card-head">
        <h2 className="node-title">{nodeId}</h2>
        <div className="actions">
          {state && <StateBadge state={state} />}
          <RetryFromButton run={run} nodeId={nodeId} />
          <CopyButton text={nodeId} label="Copy the node's id" />
          <Button
            kind="quiet"
            icon={X}
            aria-label="Close the node"
            title="Close (Esc)"
            onClick={onClose}
          />
        </div>
      </header>
      <Loaded query={detail} what="Loading the node">
        {(data) => (
          <Tabs
            label="Parts of the node"
            tabs={node?.items ? [node.handler === 'repeat' ? ROUNDS : ITEMS, ...TABS] : TABS}
            chosen={tab}
            onChoose={setTab}
          >
            {tab === 'items' && node && (
              <NodeItems
                executionId={run.execution.execution_id}
                node={node}
                chosen={item}
                onChoose={onOpenItem}
              />
            )}
            {tab === 'summary' && <NodeSummary run={run} detail={data} />}
            {tab === 'output' && <NodeOutput detail={data} />}
            {tab === 'config' && <NodeConfig detail={data} />}
            {tab === 'logs' && <NodeLogs run={run} nodeId={nodeId} state={data.state} />}
          </Tabs>
        )}
      </Loaded>
    </aside>
  );
}
