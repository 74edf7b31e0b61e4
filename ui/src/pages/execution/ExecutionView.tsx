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
import { NodePanel } from './NodePanel';
import { RetryBar } from './RetryBar';
import { useRetryPreview } from './useRetryPreview';
import type { Run } from './useRun';

const TimeLine = lazy(() => import('./TimeLine'));
const NodeList = lazy(() => import('./NodeList'));
const ExecutionLogs = lazy(() => import('./ExecutionLogs'));
const ExecutionHistory = lazy(() => import('./ExecutionHistory'));

const TABS = [
  { id: 'graph', label: 'Graph' },
  { id: 'time', label: 'Time line' },
  { id: 'nodes', label: 'Nodes' },
  { id: 'logs', label: 'Logs' },
  { id: 'history', label: 'History' },
  { id: 'values', label: 'Input and result' },
];

export function ExecutionView({ run }: { run: Run }) {
  const [query, change] = useQueryString();
  const nodeId = query.get('node');
  const tabInAddress = query.get('tab') ?? 'graph';
  const tab = TABS.some(({ id }) => id === tabInAddress) ? tabInAddress : 'graph';
  const select = useCallback(
    (chosenId: string | null) => change({ node: chosenId }, { replace: true }),
    [change],
  );
  const retrying = query.get('retry') !== null && hasEnded(run.state);
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
              {tab === 'graph' && (
                <ExecutionGraph
                  run={run}
                  selected={nodeId}
                  retry={preview.marks}
                  onSelect={select}
                />
              )}
              {tab === 'time' && <TimeLine run={run} selected={nodeId} onSelect={select} />}
              {tab === 'nodes' && <NodeList run={run} selected={nodeId} onSelect={select} />}
              {tab === 'logs' && <ExecutionLogs run={run} onSelect={select} />}
              {tab === 'history' && <ExecutionHistory run={run} onSelect={select} />}
              {tab === 'values' && <InputAndResult run={run} />}
            </Suspense>
          </Tabs>
        </div>
        {nodeId && (
          <NodePanel key={nodeId} run={run} nodeId={nodeId} onClose={() => select(null)} />
        )}
      </div>
    </Page>
  );
}
