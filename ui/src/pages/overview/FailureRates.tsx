import { useState } from 'react';
import type { Stats } from '../../api/calls';
import { Button, Card, Empty } from '../../components/basics';
import { StateShares } from '../../components/charts';
import { Link, paths } from '../../routing';
import { countText, percentText } from './figures';

const FEW = 10;

/** The server has sorted them: the highest failure rate first, then the most executions. */
export function FailureRates({ stats, when }: { stats: Stats; when: string }) {
  const [all, setAll] = useState(false);
  const rows = all ? stats.workflows : stats.workflows.slice(0, FEW);
  const more = stats.workflows.length - rows.length;
  return (
    <Card
      title="Workflows by failure rate"
      actions={more > 0 && <Button kind="quiet" onClick={() => setAll(true)}>{`Show ${more} more`}</Button>}
    >
      {rows.length === 0 ? (
        <Empty title={`No executions in ${when}`}>Choose a longer time above, or start one from a workflow.</Empty>
      ) : (
        <div className="table-wrap">
          <table className="overview-rates">
            <thead>
              <tr>
                <th scope="col">Workflow</th>
                <th scope="col" className="right">
                  Failure rate
                </th>
                <th scope="col" className="overview-wide">
                  Shares
                </th>
                <th scope="col" className="right">
                  Failed
                </th>
                <th scope="col" className="right overview-wide">
                  Completed
                </th>
                <th scope="col" className="right">
                  All
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row key={row.workflow} row={row} since={stats.since} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

function Row({ row, since }: { row: Stats['workflows'][number]; since: string }) {
  const { workflow, total, completed, failed, cancelled, active, failure_rate } = row;
  const executions = (state: string | null) => paths.executions({ workflow, state, since });
  return (
    <tr>
      <td className="overview-name">
        <Link to={paths.workflow(workflow)}>{workflow}</Link>
      </td>
      <td className={`right number ${failed ? 'overview-bad' : 'faint'}`}>
        {completed + failed ? percentText(failure_rate) : '–'}
      </td>
      <td className="overview-wide overview-shares">
        <StateShares counts={{ COMPLETED: completed, FAILED: failed, CANCELLED: cancelled, RUNNING: active }} />
      </td>
      <td className="right number">
        {failed ? (
          <Link to={executions('FAILED')} aria-label={`${countText(failed)} failed executions of ${workflow}`}>
            {countText(failed)}
          </Link>
        ) : (
          <span className="faint">0</span>
        )}
      </td>
      <td className="right number overview-wide">{countText(completed)}</td>
      <td className="right number">
        <Link to={executions(null)} aria-label={`${countText(total)} executions of ${workflow}`}>
          {countText(total)}
        </Link>
      </td>
    </tr>
  );
}
