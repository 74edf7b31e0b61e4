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
import { NodeConfig } from './NodeConfig';
import { NodeItems } from './NodeItems';
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
const LOOK_MS = 1500;

/** The details of one node, fetched again whenever its state changes. */
export function NodePanel({
  run,
  nodeId,
  onClose,
}: {
  run: Run;
  nodeId: string;
  onClose: () => void;
}) {
  const node = useSyncExternalStore(run.store.subscribe, () => run.store.get(nodeId));
  const [tab, setTab] = useState('summary');
  const panel = useRef<HTMLElement>(null);
  const state = node?.state ?? '';
  const detail = useQuery({
    queryKey: ['execution', run.execution.execution_id, 'node', nodeId, state, node?.attempt],
    queryFn: () => getNode(run.execution.execution_id, nodeId),
    placeholderData: (before: NodeDetail | undefined) => before,
    refetchInterval: state && !nodeHasEnded(state) && state !== 'PENDING' ? LOOK_MS : false,
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
            tabs={node?.items ? [...TABS, ITEMS] : TABS}
            chosen={tab}
            onChoose={setTab}
          >
            {tab === 'items' && (
              <NodeItems
                executionId={run.execution.execution_id}
                nodeId={nodeId}
                ended={nodeHasEnded(state)}
              />
            )}
            {tab === 'summary' && <NodeSummary detail={data} />}
            {tab === 'output' && <NodeOutput detail={data} />}
            {tab === 'config' && <NodeConfig detail={data} />}
            {tab === 'logs' && <NodeLogs run={run} nodeId={nodeId} state={data.state} />}
          </Tabs>
        )}
      </Loaded>
    </aside>
  );
}
