import { useQuery } from '@tanstack/react-query';
import { ArrowDown, ArrowUp } from 'lucide-react';
import { getWorkflowStats, type WorkflowStats } from '../../api/calls';
import { useLive } from '../../api/live';
import { Card, Empty, Loaded } from '../../components/basics';
import { StateShares } from '../../components/charts';
import { Link, paths, useQueryString } from '../../routing';
import { durationText } from '../../time';
import { percent } from './aliases';
import { COLUMNS, type Column, type NodeStats, nextSort, readSort, type Sort, sorted } from './stats';

/** The server answers for 5 seconds with what it has counted, so what an event brings may be older than the event. */
const AGAIN_MS = 6000;

export function StatsTab({ name, version }: { name: string; version: number }) {
  const [query, change] = useQueryString();
  const isAll = query.get('of') === 'all';
  useLive(['workflows', 'stats', name]);
  const found = useQuery({
    queryKey: ['workflows', 'stats', name, isAll ? null : version],
    queryFn: () => getWorkflowStats(name, isAll ? undefined : String(version)),
    placeholderData: (before) => before,
    staleTime: 5000,
    refetchInterval: AGAIN_MS,
  });
  return (
    <Card
      title="Statistics per node"
      actions={
        <label className="check">
          <input
            type="checkbox"
            checked={isAll}
            onChange={(event) => change({ of: event.target.checked ? 'all' : null }, { replace: true })}
          />
          of all versions
        </label>
      }
    >
      <Loaded query={found}>
        {(stats) =>
          stats.sampled === 0 ? (
            <Empty title="No execution has ended yet">
              <Link to={paths.executions({ workflow: name })}>See what is under way</Link>
            </Empty>
          ) : (
            <>
              <Sampled stats={stats} />
              <NodeTable
                rows={stats.nodes}
                sort={readSort(query.get('sort'))}
                onSort={(sort) => change({ sort }, { replace: true })}
              />
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

function Sampled({ stats }: { stats: WorkflowStats }) {
  const said = Object.entries(stats.states)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${state.toLowerCase()}`);
  return (
    <div className="wf-sampled">
      <p>
        The last {stats.sampled} executions: {said.join(', ')}. Those that completed took{' '}
        <b className="number">{durationText(stats.p50_seconds)}</b> (p50),{' '}
        <b className="number">{durationText(stats.p95_seconds)}</b> (p95).
      </p>
      <StateShares counts={stats.states} />
    </div>
  );
}

type TableProps = { rows: NodeStats[]; sort: Sort; onSort: (sort: string | null) => void };

function NodeTable({ rows, sort, onSort }: TableProps) {
  return (
    <div className="table-wrap">
      <table className="wf-stats">
        <caption className="visually-hidden">Statistics per node</caption>
        <thead>
          <tr>
            {COLUMNS.map(({ column, label, isNumber, title }) => (
              <th key={column} className={isNumber ? 'right' : ''} aria-sort={ariaSort(sort, column)} title={title}>
                <button type="button" className="wf-sort" onClick={() => onSort(nextSort(sort, column))}>
                  {label}
                  {sort?.column === column &&
                    (sort.isDown ? (
                      <ArrowDown size={13} aria-hidden="true" />
                    ) : (
                      <ArrowUp size={13} aria-hidden="true" />
                    ))}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted(rows, sort).map((row) => (
            <tr key={row.node_id}>
              <td className="wf-node">{row.node_id}</td>
              <td className="faint">{row.handler}</td>
              <td className="right number">{row.count}</td>
              <td className="right number">{row.skipped || <span className="faint">0</span>}</td>
              <td className="right number">
                <FailureRate row={row} />
              </td>
              <td className="right number">{row.attempts}</td>
              <td className="right number">{durationText(row.p50_seconds)}</td>
              <td className="right number">{durationText(row.p95_seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function FailureRate({ row }: { row: NodeStats }) {
  if (!row.count) return <span className="faint">–</span>;
  if (!row.failed) return <span className="faint">0 %</span>;
  return (
    <span className="wf-failed" title={`${row.failed} of ${row.count} failed`}>
      {percent(row.failure_rate)}
    </span>
  );
}

function ariaSort(sort: Sort, column: Column): 'ascending' | 'descending' | 'none' {
  if (sort?.column !== column) return 'none';
  return sort.isDown ? 'descending' : 'ascending';
}
