import { lazy, Suspense, useCallback, useMemo, useState, useSyncExternalStore } from 'react';
import { Empty, ErrorBox, Loading, Page, useTitle } from '../../components/basics';
import { Tabs } from '../../components/tabs';
import { criticalPath } from '../../graph/critical';
import { useQueryString } from '../../routing';
import { hasEnded } from '../../states';
import { Actions } from './Actions';
import { Cause } from './Cause';
import { Heading } from './Heading';
import { NodePanel } from './NodePanel';
import { RetryBar, useRetryPlan } from './retry';
import { type Run, useRun } from './useRun';
import { Values } from './Values';
import './execution.css';

const GraphView = lazy(() => import('../../graph/GraphView').then((module) => ({ default: module.GraphView })));
const TimeLine = lazy(() => import('./TimeLine'));
const Nodes = lazy(() => import('./Nodes'));
const History = lazy(() => import('./History'));

const TABS = [
  { id: 'graph', label: 'Graph' },
  { id: 'time', label: 'Time line' },
  { id: 'nodes', label: 'Nodes' },
  { id: 'history', label: 'History' },
  { id: 'values', label: 'Input and result' },
];

export default function ExecutionPage({ id }: { id: string }) {
  const run = useRun(id);
  useTitle(run.data ? `${run.data.execution.workflow} ${run.data.state.toLowerCase()}` : 'Execution');
  if (run.data) return <Shown run={run.data} />;
  if (run.error) {
    return (
      <Page title="Execution">
        <ErrorBox error={run.error} retry={() => void run.refetch()} />
      </Page>
    );
  }
  return <Loading what="Reading the execution" />;
}

function Shown({ run }: { run: Run }) {
  const [query, change] = useQueryString();
  const node = query.get('node');
  const tab = TABS.some((each) => each.id === query.get('tab')) ? (query.get('tab') as string) : 'graph';
  const select = useCallback((id: string | null) => change({ node: id }, { replace: true }), [change]);
  const retrying = query.get('retry') !== null && hasEnded(run.state);
  const plan = useRetryPlan(run, retrying);
  return (
    <Page title={<Heading run={run} />} actions={<Actions run={run} retrying={retrying} />}>
      {retrying && <RetryBar run={run} plan={plan} />}
      <Cause run={run} onSelect={select} />
      <div className={node ? 'run with-node' : 'run'}>
        <div className="run-main">
          <Tabs label="Parts of the execution" tabs={TABS} chosen={tab} onChoose={(each) => change({ tab: each })}>
            <Suspense fallback={<Loading />}>
              {tab === 'graph' && <RunGraph run={run} node={node} retry={plan.marks} onSelect={select} />}
              {tab === 'time' && <TimeLine run={run} selected={node} onSelect={select} />}
              {tab === 'nodes' && <Nodes run={run} selected={node} onSelect={select} />}
              {tab === 'history' && <History run={run} onSelect={select} />}
              {tab === 'values' && <Values run={run} />}
            </Suspense>
          </Tabs>
        </div>
        {node && <NodePanel key={node} run={run} id={node} onClose={() => select(null)} />}
      </div>
    </Page>
  );
}

type RunGraphProps = {
  run: Run;
  node: string | null;
  retry: ReadonlyMap<string, string | null> | null;
  onSelect: (id: string | null) => void;
};

function RunGraph({ run, node, retry, onSelect }: RunGraphProps) {
  const { store, edges, state } = run;
  const [marked, setMarked] = useState(true);
  const version = useSyncExternalStore(store.subscribe, () => (hasEnded(state) ? store.version : 0));
  // only of what has ended: while it runs, the last to finish changes all the time
  const critical = useMemo(
    () => new Set(version >= 0 && hasEnded(state) && marked ? criticalPath(store.all(), edges) : []),
    [store, edges, state, marked, version],
  );
  if (store.ids.length === 0) return <Empty title="This workflow has no nodes" />;
  return (
    <>
      <GraphView store={store} edges={edges} selected={node} critical={critical} retry={retry} onSelect={onSelect} />
      {hasEnded(state) && (
        <label className="check run-legend">
          <input type="checkbox" checked={marked} onChange={(event) => setMarked(event.target.checked)} />
          Mark the critical path: what the end had to wait for
        </label>
      )}
    </>
  );
}
