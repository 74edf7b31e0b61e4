import type { NodeDetail } from '../../api/calls';
import { Elapsed } from '../../components/Elapsed';
import { StateBadge } from '../../components/StateBadge';
import { Time } from '../../components/Time';
import { ErrorDetail } from './ErrorDetail';

const AT_WORK: readonly string[] = ['RUNNING', 'WAITING'];

export function NodeAttempts({ detail }: { detail: NodeDetail }) {
  if (detail.attempts.length === 0) return null;
  return (
    <section>
      <h3>Attempts</h3>
      <ol className="attempts">
        {detail.attempts.map((attempt) => (
          <li key={attempt.attempt}>
            <div className="attempt-head">
              <strong>{attempt.attempt}</strong>
              <StateBadge state={attempt.state} />
              <span>
                <Time at={attempt.started_at ?? attempt.queued_at ?? attempt.at} />
              </span>
              {attempt.started_at && (
                <span>
                  {attempt.state === 'WAITING' ? 'waits' : 'ran'}{' '}
                  <Elapsed
                    from={attempt.started_at}
                    to={
                      attempt.finished_at ??
                      (AT_WORK.includes(attempt.state) ? null : attempt.started_at)
                    }
                  />
                </span>
              )}
              {attempt.worker_id && <code className="id">{attempt.worker_id}</code>}
            </div>
            {attempt.error && (attempt.attempt !== detail.attempt || !detail.error) && (
              <ErrorDetail error={attempt.error} />
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
