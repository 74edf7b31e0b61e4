import type { DeadLetter } from '../../api/calls';
import { Time } from '../../components/Time';

export function DeadLetterAttempts({ letter }: { letter: DeadLetter }) {
  if (letter.attempts.length === 0) return null;
  return (
    <section>
      <h3>Attempts</h3>
      <ol className="dead-letters-attempts">
        {letter.attempts.map((attempt) => (
          <li key={attempt.attempt}>
            <span className="dead-letters-attempt-number number">{attempt.attempt}</span>
            <div>
              <p>{attempt.error?.message ?? 'no message'}</p>
              <p className="faint">
                <Time at={attempt.at} exact />
                {attempt.error && ` · ${attempt.error.category}`}
                {attempt.worker_id && (
                  <>
                    {' · worker '}
                    <code>{attempt.worker_id}</code>
                  </>
                )}
              </p>
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
