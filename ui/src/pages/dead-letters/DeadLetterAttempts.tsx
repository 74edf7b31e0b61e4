import type { DeadLetter } from '../../api/calls';
import { Time } from '../../components/Time';

export function DeadLetterAttempts({ letter }: { letter: DeadLetter }) {
  if (letter.attempts.length === 0) return null;
  return (
    <section>
      <h3>Attempts</h3>
      <ol className="letters-attempts">
        {letter.attempts.map((each) => (
          <li key={each.attempt}>
            <span className="letters-attempt-number number">{each.attempt}</span>
            <div>
              <p>{each.error?.message ?? 'no message'}</p>
              <p className="faint">
                <Time at={each.at} exact />
                {each.error && ` · ${each.error.category}`}
                {each.worker_id && (
                  <>
                    {' · worker '}
                    <code>{each.worker_id}</code>
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
