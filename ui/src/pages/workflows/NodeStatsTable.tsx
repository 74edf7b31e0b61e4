import { ArrowDown, ArrowUp } from 'lucide-react';
import type { NodeStats } from '../../api/calls';
import { durationText } from '../../time';
import { percent } from './aliases';
import { COLUMNS, type Column, nextSort, type Sort, sortedStats } from './statsOrder';

type TableProps = { rows: NodeStats[]; sort: Sort; onSort: (sort: string | null) => void };

export function NodeStatsTable({ rows, sort, onSort }: TableProps) {
  return (
    <div className="table-wrap">
      <table className="wf-stats">
        <caption className="visually-hidden">Statistics per node</caption>
        <thead>
          <tr>
            {COLUMNS.map(({ column, label, isNumber, title }) => (
              <th
                key={column}
                className={isNumber ? 'right' : ''}
                aria-sort={ariaSort(sort, column)}
                title={title}
              >
                <button
                  type="button"
                  className="wf-sort"
                  onClick={() => onSort(nextSort(sort, column))}
                >
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
          {sortedStats(rows, sort).map((row) => (
            <tr key={row.node_id}>
              <td className="wf-node">{row.node_id}</td>
              <td className="faint">{row.handler}</td>
              <td className="right number">{row.count}</td>
              <td className="right number">{row.skipped || <span className="faint">0</span>}</td>
              <td className="right number">
                <NodeFailureRate row={row} />
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

function NodeFailureRate({ row }: { row: NodeStats }) {
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
