import type { NodeDetail } from '../../api/calls';
import { Elapsed } from '../../components/Elapsed';
import { StateBadge } from '../../components/StateBadge';
import { Time } from '../../components/Time';
import { ErrorDetail } from './ErrorDetail';

export function NodeAttempts({ detail }: { detail: NodeDetail }) {
  if (detail.attempts.length === 0) return null;
  return (
    <section>
      <h3>Attempts</h3>
      <ol className="attempts">
        {detail.attempts.map((each) => (
          <li key={each.attempt}>
            <div className="attempt-head">
              <strong>{each.attempt}</strong>
              <StateBadge state={each.state} />
              <span>
                <Time at={each.started_at ?? each.queued_at ?? each.at} />
              </span>
              {each.started_at && (
                <span>
                  ran{' '}
                  <Elapsed
                    from={each.started_at}
                    to={each.finished_at ?? (each.state === 'RUNNING' ? null : each.started_at)}
                  />
                </span>
              )}
              {each.worker_id && <code className="id">{each.worker_id}</code>}
            </div>
            {each.error && (each.attempt !== detail.attempt || !detail.error) && <ErrorDetail error={each.error} />}
          </li>
        ))}
      </ol>
    </section>
  );
}
