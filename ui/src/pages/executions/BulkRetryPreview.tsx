import type { ListedExecution } from '../../api/calls';
import { nodesText, type Outcome } from './bulkOutcomes';
import { shortId } from './filters';

const LINES_SHOWN = 50;

export function BulkRetryPreview({ outcomes, rows }: { outcomes: Outcome[]; rows: ListedExecution[] }) {
  const total = outcomes.reduce((sum, each) => sum + (each.runs?.length ?? 0), 0);
  const named = new Map(rows.map((row) => [row.execution_id, `${row.workflow}@${row.version}`]));
  return (
    <section className="xs-would">
      <h3>{nodesText(total)} would run</h3>
      <ul>
        {outcomes.slice(0, LINES_SHOWN).map((each) => (
          <li key={each.execution_id}>
            <span>
              {named.get(each.execution_id)} <code title={each.execution_id}>{shortId(each.execution_id)}</code>
            </span>
            <span className="faint">
              {nodesText(each.runs?.length ?? 0)}, {each.keeps?.length ?? 0} kept
            </span>
          </li>
        ))}
      </ul>
      {outcomes.length > LINES_SHOWN && <p className="faint">and {outcomes.length - LINES_SHOWN} more</p>}
    </section>
  );
}
