import { lazy, Suspense, useCallback } from 'react';
import { Loading } from '../../components/Loading';
import { Page } from '../../components/Page';
import { Tabs } from '../../components/Tabs';
import { useQueryString } from '../../routing/useQueryString';
import { hasEnded } from '../../states';
import { ExecutionActions } from './ExecutionActions';
import { ExecutionGraph } from './ExecutionGraph';
import { ExecutionHeading } from './ExecutionHeading';
import { FailureCause } from './FailureCause';
import { InputAndResult } from './InputAndResult';
import { itemOf } from './items/addresses';
import { ItemView } from './items/ItemView';
import { NodePanel } from './NodePanel';
import { RetryBar } from './RetryBar';
import { useItemRun } from './useItemRun';
import { useRetryPreview } from './useRetryPreview';
import type { Run } from './useRun';

const TimeLine = lazy(() => import('./TimeLine'));
const NodeList = lazy(() => import('./NodeList'));
const ExecutionLogs = lazy(() => import('./ExecutionLogs'));
const ExecutionHistory = lazy(() => import('./ExecutionHistory'));
const ExecutionSignals = lazy(() => import('./ExecutionSignals'));

const NARROW = '(max-width: 1000px)';
const TABS = [
  { id: 'graph', label: 'Graph' },
  { id: 'time', label: 'Time line' },
  { id: 'nodes', label: 'Nodes' },
  { id: 'logs', label: 'Logs' },
  { id: 'history', label: 'History' },
  { id: 'signals', label: 'Signals' },
  { id: 'values', label: 'Input and result' },
];

export function ExecutionView({ run }: { run: Run }) {
  const [query, change] = useQueryString();
  const nodeId = query.get('node');
  const tabInAddress = query.get('tab') ?? 'graph';
  const tab = TABS.some(({ id }) => id === tabInAddress) ? tabInAddress : 'graph';
  const isNode = (id: string) => run.store.get(id) !== undefined;
  const retrying = query.get('retry') !== null && hasEnded(run.state);
  const itemInAddress = query.get('under') ?? (nodeId === null ? null : itemOf(nodeId, isNode));
  const under = retrying ? null : itemInAddress; // a retry is previewed in the whole graph
  const item = useItemRun(run, under);
  const selectHere = useCallback(
    (chosenId: string | null) => change({ node: chosenId }, { replace: true }),
    [change],
  );
  const show = (chosenId: string | null, item: string | null) =>
    change({ node: chosenId, under: item }, { replace: true });
  const select = (chosenId: string) => show(chosenId, itemOf(chosenId, isNode));
  const openItem = (address: string) => {
    // On a small screen the panel would hide the item's graph.
    const isNarrow = matchMedia(NARROW).matches;
    change({ under: address, node: isNarrow ? null : nodeId, tab: null });
  };
  const preview = useRetryPreview(run, retrying);
  return (
    <Page
      title={<ExecutionHeading run={run} />}
      actions={<ExecutionActions run={run} retrying={retrying} />}
    >
      {retrying && <RetryBar run={run} preview={preview} />}
      <FailureCause run={run} onSelect={select} />
      <div className={nodeId ? 'run with-node' : 'run'}>
        <div className="run-main">
          <Tabs
            label="Parts of the execution"
            tabs={TABS}
            chosen={tab}
            onChoose={(chosen) => change({ tab: chosen })}
          >
            <Suspense fallback={<Loading />}>
              {tab === 'graph' && under === null && (
                <ExecutionGraph
                  run={run}
                  selected={nodeId}
                  retry={preview.marks}
                  onSelect={selectHere}
                />
              )}
              {tab === 'graph' && under !== null && (
                <ItemView
                  run={run}
                  address={under}
                  item={item}
                  selected={nodeId}
                  onSelect={selectHere}
                  onShow={show}
                />
              )}
              {tab === 'time' && <TimeLine run={run} selected={nodeId} onSelect={select} />}
              {tab === 'nodes' && <NodeList run={run} selected={nodeId} onSelect={select} />}
              {tab === 'logs' && <ExecutionLogs run={run} onSelect={select} />}
              {tab === 'history' && <ExecutionHistory run={run} onSelect={select} />}
              {tab === 'signals' && <ExecutionSignals run={run} onSelect={select} />}
              {tab === 'values' && <InputAndResult run={run} />}
            </Suspense>
          </Tabs>
        </div>
        {nodeId && (
          <NodePanel
            key={nodeId}
            run={item.data?.store.get(nodeId) ? item.data : run}
            nodeId={nodeId}
            item={under}
            onOpenItem={openItem}
            onClose={() => show(null, query.get('under'))}
          />
        )}
      </div>
    </Page>
  );
}
