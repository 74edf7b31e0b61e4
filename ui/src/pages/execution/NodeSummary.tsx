import type { NodeDetail } from '../../api/calls';
import { Elapsed } from '../../components/Elapsed';
import { Time } from '../../components/Time';
import { reasonText } from '../../reasonText';
import { nodeHasEnded } from '../../states';
import { ErrorDetail } from './ErrorDetail';
import { NodeAttempts } from './NodeAttempts';
import type { Run } from './useRun';
import { NodeWait } from './waiting/NodeWait';

export function NodeSummary({ run, detail }: { run: Run; detail: NodeDetail }) {
  const reason = detail.reason_text ?? reasonText(detail.reason);
  return (
    <div className="node-parts">
      {detail.error && <ErrorDetail error={detail.error} />}
      <NodeWait run={run} detail={detail} />
      {reason && !detail.error && !isShownByWait(detail.state) && (
        <p className="node-reason">{withCondition(detail, reason)}</p>
      )}
      <dl className="facts">
        <Fact name="Handler">{detail.handler}</Fact>
        <Fact name="Queue">{detail.queue}</Fact>
        <Fact name="Worker">{detail.worker_id}</Fact>
        <Fact name="Queued">{detail.queued_at && <Time at={detail.queued_at} />}</Fact>
        <Fact name="Waited">
          {detail.queued_at && detail.started_at && (
            <Elapsed from={detail.queued_at} to={detail.started_at} />
          )}
        </Fact>
        <Fact name={detail.state === 'WAITING' ? 'Waiting for' : 'Ran'}>
          {detail.started_at && <Elapsed from={detail.started_at} to={endOf(detail)} />}
        </Fact>
        <Fact name="Depends on">{detail.dependencies.join(', ')}</Fact>
        <Fact name="Condition">{detail.condition && <code>{detail.condition}</code>}</Fact>
        <Fact name="Trigger rule">
          {detail.trigger_rule !== 'all_success' && detail.trigger_rule}
        </Fact>
        <Fact name="Time limit">
          {detail.timeout_seconds ? `${detail.timeout_seconds} s` : null}
        </Fact>
      </dl>
      <NodeAttempts detail={detail} />
    </div>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  if (!children) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/**
 * The end of the last attempt: a node that waits for its next attempt isn't running, though it
 * hasn't ended.
 */
function endOf(detail: NodeDetail): string | null {
  if (detail.finished_at) return detail.finished_at;
  if (detail.state === 'RUNNING' || detail.state === 'WAITING') return null;
  return detail.attempts.at(-1)?.finished_at ?? detail.started_at ?? null;
}

/** Of a node that hasn't ended, the reason is part of why it isn't running. */
function isShownByWait(state: string): boolean {
  return !nodeHasEnded(state) && state !== 'RUNNING';
}

function withCondition(detail: NodeDetail, reason: string): React.ReactNode {
  if (detail.reason !== 'condition_false' || !detail.condition) return reason;
  return (
    <>
      {reason}: <code>{detail.condition}</code>
    </>
  );
}
