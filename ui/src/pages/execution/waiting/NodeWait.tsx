import { useQuery } from '@tanstack/react-query';
import { explainNode, type NodeDetail } from '../../../api/calls';
import { TimeLeft } from '../../../components/TimeLeft';
import { nodeHasEnded } from '../../../states';
import { withLocalTimes } from '../../../time';
import type { Run } from '../useRun';
import { ApprovalWait } from './ApprovalWait';
import { SignalWait } from './SignalWait';

const LOOK_MS = 2000;

/** Why a node isn't running now, until when, and what can be done about it. */
export function NodeWait({ run, detail }: { run: Run; detail: NodeDetail }) {
  const { node_id: nodeId, state, attempt, handler } = detail;
  const executionId = run.execution.execution_id;
  // An item of a map is no node of a graph: it doesn't wait, its nodes do.
  const isNode = run.store.get(nodeId) !== undefined;
  const isWaiting = isNode && !nodeHasEnded(state) && state !== 'RUNNING';
  const why = useQuery({
    queryKey: ['execution', executionId, 'node', nodeId, 'why', state, attempt],
    queryFn: () => explainNode(executionId, nodeId),
    enabled: isWaiting,
    refetchInterval: LOOK_MS,
  });
  if (!isWaiting || !why.data || why.data.reason === 'ended') return null;
  const { text, until, reason } = why.data;
  return (
    <section className="node-wait" aria-label="Why it isn't running">
      <h3>Why it isn't running</h3>
      <p className="node-reason">
        {until && (
          <>
            <TimeLeft until={until} />{' '}
          </>
        )}
        {sentenceOf(text)}
      </p>
      {reason === 'signal' && <SignalWait run={run} detail={detail} />}
      {handler === 'approval' && reason === 'approval' && (
        <ApprovalWait run={run} detail={detail} />
      )}
    </section>
  );
}

function sentenceOf(text: string): string {
  return withLocalTimes(text.charAt(0).toUpperCase() + text.slice(1));
}
