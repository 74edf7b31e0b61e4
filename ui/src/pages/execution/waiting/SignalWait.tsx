import type { NodeDetail } from '../../../api/calls';
import { useMay } from '../../../api/useMay';
import type { Run } from '../useRun';
import { SendSignal } from './SendSignal';
import { SignalTable } from './SignalTable';
import { awaitedNames, textOf } from './signalConfig';
import { useSignals } from './useSignals';

/** What a node waits for, the signals that nobody has taken yet, and a form to send one. */
export function SignalWait({ run, detail }: { run: Run; detail: NodeDetail }) {
  const executionId = run.execution.execution_id;
  const mayOperate = useMay('operate');
  const signals = useSignals(executionId, true);
  const config = detail.resolved_config ?? detail.config;
  const kept = (signals.data?.items ?? []).filter(({ state }) => state === 'kept');
  return (
    <>
      {kept.length > 0 && (
        <>
          <h4>Kept signals that it doesn't take</h4>
          <SignalTable signals={kept} />
        </>
      )}
      {mayOperate && (
        <SendSignal
          executionId={executionId}
          names={awaitedNames(config)}
          correlation={textOf(config.correlation)}
        />
      )}
    </>
  );
}
