import type { RetriedLetters } from '../../api/calls';
import { Id } from '../../components/Id';
import { toast } from '../../components/toast';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { counted } from './selection';

const MOST_LINKS = 5;

export function toastStarted(done: RetriedLetters[]): void {
  const made = done.flatMap((each) => (each.execution_id && !each.error ? [each.execution_id] : []));
  for (const each of done.filter((one) => one.error).slice(0, 3)) {
    toast(`${each.retry_of}: ${each.error?.detail}`, 'failed');
  }
  if (made.length === 0) return;
  toast(
    <>
      {`${counted(made.length, 'execution')} started:`}
      {made.slice(0, MOST_LINKS).map((id) => (
        <span key={id} className="letters-made">
          <Link to={paths.execution(id)}>
            <Id>{id}</Id>
          </Link>
        </span>
      ))}
      {made.length > MOST_LINKS && <span className="letters-made faint">{`and ${made.length - MOST_LINKS} more`}</span>}
    </>,
  );
}
