import type { ListedExecution } from '../../api/calls';
import { nodesText, type Outcome } from './bulkOutcomes';
import { shortId } from './filters';

const LINES_SHOWN_MAX = 50;

export function BulkRetryPreview({
  outcomes,
  rows,
}: {
  outcomes: Outcome[];
  rows: ListedExecution[];
}) {
  const total = outcomes.reduce((sum, outcome) => sum + (outcome.runs?.length ?? 0), 0);
  const named = new Map(rows.map((row) => [row.execution_id, `${row.workflow}@${row.version}`]));
  return (
    <section className="xs-would">
      <h3>{nodesText(total)} would run</h3>
      <ul>
        {outcomes.slice(0, LINES_SHOWN_MAX).map((outcome) => (
          <li key={outcome.execution_id}>
            <span>
              {named.get(outcome.execution_id)}{' '}
              <code title={outcome.execution_id}>{shortId(outcome.execution_id)}</code>
            </span>
            <span className="faint">
              {nodesText(outcome.runs?.length ?? 0)}, {outcome.keeps?.length ?? 0} reused
            </span>
          </li>
        ))}
      </ul>
      {outcomes.length > LINES_SHOWN_MAX && (
        <p className="faint">and {outcomes.length - LINES_SHOWN_MAX} more</p>
      )}
    </section>
  );
}
