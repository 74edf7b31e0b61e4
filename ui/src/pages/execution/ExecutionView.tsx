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

const Nodes = lazy(() => import('./NodeList'));

const History = lazy(() => import('./ExecutionHistory'));

const TABS = [
  { id: 'graph', label: 'Graph' },
  { id: 'time', label: 'Time line' },
  { id: 'nodes', label: 'Nodes' },
  { id: 'history', label: 'History' },
  { id: 'values', label: 'Input and result' },
];

export function ExecutionView({ run }: { run: Run }) {
  const [query, change] = useQueryString();
  const node = query.get('node');
  const tab = TABS.some((tab) => tab.id === query.get('tab')) ? (query.get('tab') as string) : 'graph';
  const select = useCallback((id: string | null) => change({ node: id }, { replace: true }), [change]);
  const retrying = query.get('retry') !== null && hasEnded(run.state);
  const plan = useRetryPreview(run, retrying);
  return (
    <Page title={<ExecutionHeading run={run} />} actions={<ExecutionActions run={run} retrying={retrying} />}>
      {retrying && <RetryBar run={run} plan={plan} />}
      <FailureCause run={run} onSelect={select} />
      <div className={node ? 'run with-node' : 'run'}>
        <div className="run-main">
          <Tabs label="Parts of the execution" tabs={TABS} chosen={tab} onChoose={(chosen) => change({ tab: chosen })}>
            <Suspense fallback={<Loading />}>
              {tab === 'graph' && <ExecutionGraph run={run} node={node} retry={plan.marks} onSelect={select} />}
              {tab === 'time' && <TimeLine run={run} selected={node} onSelect={select} />}
              {tab === 'nodes' && <Nodes run={run} selected={node} onSelect={select} />}
              {tab === 'history' && <History run={run} onSelect={select} />}
              {tab === 'values' && <InputAndResult run={run} />}
            </Suspense>
          </Tabs>
        </div>
        {node && <NodePanel key={node} run={run} id={node} onClose={() => select(null)} />}
      </div>
    </Page>
  );
}
