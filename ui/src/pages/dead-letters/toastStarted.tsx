import type { RetriedLetters } from '../../api/calls';
import { Id } from '../../components/Id';
import { toast } from '../../components/toast';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { counted } from './selection';

const LINKS_SHOWN_MAX = 5;

export function toastStarted(items: RetriedLetters[]): void {
  const startedIds = items.flatMap((item) =>
    item.execution_id && !item.error ? [item.execution_id] : [],
  );
  for (const item of items.filter((item) => item.error).slice(0, 3)) {
    toast(`${item.retry_of}: ${item.error?.detail}`, 'failed');
  }
  if (startedIds.length === 0) return;
  toast(
    <>
      {`${counted(startedIds.length, 'execution')} started:`}
      {startedIds.slice(0, LINKS_SHOWN_MAX).map((executionId) => (
        <span key={executionId} className="dead-letters-made">
          <Link to={paths.execution(executionId)}>
            <Id>{executionId}</Id>
          </Link>
        </span>
      ))}
      {startedIds.length > LINKS_SHOWN_MAX && (
        <span className="dead-letters-made faint">{`and ${startedIds.length - LINKS_SHOWN_MAX} more`}</span>
      )}
    </>,
  );
}
