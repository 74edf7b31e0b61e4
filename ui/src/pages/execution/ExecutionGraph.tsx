import { lazy, useMemo, useState, useSyncExternalStore } from 'react';
import { Empty } from '../../components/Empty';
import { criticalPath } from '../../graph/criticalPath';
import { hasEnded } from '../../states';
import type { Run } from './useRun';

const GraphView = lazy(() =>
  import('../../graph/GraphView').then((module) => ({ default: module.GraphView })),
);

type RunGraphProps = {
  run: Run;
  selected: string | null;
  retry: ReadonlyMap<string, string | null> | null;
  onSelect: (nodeId: string | null) => void;
};

export function ExecutionGraph({ run, selected, retry, onSelect }: RunGraphProps) {
  const { store, edges, state } = run;
  const [marked, setMarked] = useState(true);
  const version = useSyncExternalStore(store.subscribe, () =>
    hasEnded(state) ? store.version : 0,
  );
  // only of an execution that has ended: before that, the last node to finish changes all the time
  const critical = useMemo(
    () =>
      new Set(version >= 0 && hasEnded(state) && marked ? criticalPath(store.all(), edges) : []),
    [store, edges, state, marked, version],
  );
  if (store.ids.length === 0) return <Empty title="This workflow has no nodes" />;
  return (
    <>
      <GraphView
        store={store}
        edges={edges}
        selected={selected}
        critical={critical}
        retry={retry}
        ofInterest={run.execution.error?.node_id ?? null}
        onSelect={onSelect}
      />
      {hasEnded(state) && (
        <label className="check run-legend">
          <input
            type="checkbox"
            checked={marked}
            onChange={(event) => setMarked(event.target.checked)}
          />
          Mark the critical path: the nodes that the end had to wait for
        </label>
      )}
    </>
  );
}
