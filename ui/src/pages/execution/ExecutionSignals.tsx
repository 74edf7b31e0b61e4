import { useSyncExternalStore } from 'react';
import { useMay } from '../../api/useMay';
import { Card } from '../../components/Card';
import { Empty } from '../../components/Empty';
import { Loaded } from '../../components/Loaded';
import { hasEnded } from '../../states';
import type { Run } from './useRun';
import { SendSignal } from './waiting/SendSignal';
import { SignalTable } from './waiting/SignalTable';
import { useSignals } from './waiting/useSignals';

/** The signals of an execution, taken, kept or unused, and a form to send one. */
export default function ExecutionSignals({
  run,
  onSelect,
}: {
  run: Run;
  onSelect: (nodeId: string) => void;
}) {
  const { execution, store, state } = run;
  useSyncExternalStore(store.subscribe, () => store.version);
  const mayOperate = useMay('operate');
  const isRunning = !hasEnded(state);
  const signals = useSignals(execution.execution_id, isRunning);
  return (
    <div className="grid">
      <Card title="Signals">
        <Loaded query={signals} what="Loading the signals">
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="No signal was sent">
                A node with the handler <code>signal</code> waits for one.
              </Empty>
            ) : (
              <SignalTable signals={items} onSelect={onSelect} />
            )
          }
        </Loaded>
      </Card>
      {mayOperate && isRunning && (
        <Card>
          <SendSignal executionId={execution.execution_id} names={[]} />
        </Card>
      )}
    </div>
  );
}
