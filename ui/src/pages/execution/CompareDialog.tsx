import { useQuery } from '@tanstack/react-query';
import { listExecutions } from '../../api/calls';
import { Dialog } from '../../components/Dialog';
import { Elapsed } from '../../components/Elapsed';
import { Loaded } from '../../components/Loaded';
import { StateBadge } from '../../components/StateBadge';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { shortId } from '../executions/filters';
import type { Run } from './useRun';

const SHOWN_MAX = 30;

/** Which execution to compare this one with: the latest of the same workflow. */
export function CompareDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const { execution_id: executionId, workflow, retry_of: retryOf } = run.execution;
  const latest = useQuery({
    queryKey: ['executions', 'compare', workflow],
    queryFn: () => listExecutions({ workflow }, null, SHOWN_MAX),
  });
  return (
    <Dialog title="Compare with another execution" onClose={onClose}>
      {retryOf && (
        <p>
          <Link to={paths.compare(retryOf, executionId)}>The execution that this one retries</Link>
        </p>
      )}
      <Loaded query={latest}>
        {({ items }) => {
          const others = items.filter((item) => item.execution_id !== executionId);
          if (others.length === 0) return <p>No other execution of {workflow} is stored.</p>;
          return (
            <div className="table-wrap">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Execution</th>
                    <th scope="col">State</th>
                    <th scope="col">Started</th>
                    <th scope="col" className="right">
                      Took
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {others.map((item) => (
                    <tr key={item.execution_id}>
                      <td>
                        <Link
                          to={paths.compare(item.execution_id, executionId)}
                          title={item.execution_id}
                        >
                          <code>{shortId(item.execution_id)}</code>
                        </Link>
                      </td>
                      <td>
                        <StateBadge state={item.state} />
                      </td>
                      <td>
                        <Time at={item.started_at ?? item.created_at} />
                      </td>
                      <td className="right">
                        <Elapsed from={item.started_at} to={item.finished_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          );
        }}
      </Loaded>
    </Dialog>
  );
}
