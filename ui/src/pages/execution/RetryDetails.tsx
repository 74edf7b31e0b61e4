import type { RetryRun } from '../../api/calls';
import { remarkable, retryRunText } from './retryTexts';

const SHOWN_MAX = 20;

/** Of maps and loops which items run, and which nodes wait again. */
export function RetryDetails({ runs }: { runs: readonly RetryRun[] }) {
  const shown = remarkable(runs);
  if (shown.length === 0) return null;
  return (
    <ul className="retry-details" aria-label="What runs in detail">
      {shown.slice(0, SHOWN_MAX).map((run) => (
        <li key={run.node_id}>
          <strong>{run.node_id}</strong> {retryRunText(run)}
        </li>
      ))}
      {shown.length > SHOWN_MAX && <li>and {shown.length - SHOWN_MAX} more</li>}
    </ul>
  );
}
