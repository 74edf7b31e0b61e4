import type { DeadLetter } from '../../api/calls';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';

/** Whether a dead letter was retried or dropped, and when. */
export function ClosedTag({ letter }: { letter: DeadLetter }) {
  if (!letter.closed) return null;
  return (
    <span className="tag">
      {letter.closed} <Time at={letter.closed_at} />
      {letter.retried_as && <Link to={paths.execution(letter.retried_as)}>see the retry</Link>}
    </span>
  );
}
