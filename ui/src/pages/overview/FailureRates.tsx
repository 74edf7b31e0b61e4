import { useState } from 'react';
import type { Stats } from '../../api/calls';
import { Button } from '../../components/Button';
import { Card } from '../../components/Card';
import { Empty } from '../../components/Empty';
import { FailureRateRow } from './FailureRateRow';

const FEW = 10;

/** Workflows as the server sorts them: the highest failure rate first, then the most executions. */
export function FailureRates({ stats, when }: { stats: Stats; when: string }) {
  const [all, setAll] = useState(false);
  const rows = all ? stats.workflows : stats.workflows.slice(0, FEW);
  const more = stats.workflows.length - rows.length;
  return (
    <Card
      title="Workflows by failure rate"
      actions={
        more > 0 && <Button kind="quiet" onClick={() => setAll(true)}>{`Show ${more} more`}</Button>
      }
    >
      {rows.length === 0 ? (
        <Empty title={`No executions in ${when}`}>
          Choose a longer time range above, or start an execution from a workflow.
        </Empty>
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
                <FailureRateRow key={row.workflow} row={row} since={stats.since} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}
