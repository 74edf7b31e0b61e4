import { useEffect, useRef } from 'react';
import type { ListedExecution } from '../../api/calls';
import { ExecutionRow } from './ExecutionRow';
import './executions.css';

type TableProps = {
  rows: ListedExecution[];
  caption: string;
  isBusy?: boolean;
  selection?: {
    ids: ReadonlySet<string>;
    onSelect: (executionId: string, isRange: boolean) => void;
    onAll: () => void;
  };
  onLabel?: (label: string) => void;
  onCursor?: (executionId: string) => void;
};

/** A table of executions; on a narrow screen, cards. */
export function ExecutionTable({
  rows,
  caption,
  isBusy = false,
  selection,
  onLabel,
  onCursor,
}: TableProps) {
  return (
    <div className="table-wrap">
      <table className="xs-table" aria-busy={isBusy}>
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {selection && (
              <th className="xs-check">
                <SelectAllCheckbox
                  count={rows.length}
                  selected={selection.ids.size}
                  onAll={selection.onAll}
                />
              </th>
            )}
            <th>State</th>
            <th>Workflow</th>
            <th>Execution</th>
            <th>Labels</th>
            <th>Started</th>
            <th className="right">Duration</th>
            <th>Error</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <ExecutionRow
              key={row.execution_id}
              row={row}
              isSelected={selection?.ids.has(row.execution_id) ?? false}
              onSelect={selection?.onSelect}
              onLabel={onLabel}
              onCursor={onCursor}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SelectAllCheckbox({
  count,
  selected,
  onAll,
}: {
  count: number;
  selected: number;
  onAll: () => void;
}) {
  const box = useRef<HTMLInputElement>(null);
  const isAll = count > 0 && selected === count;
  useEffect(() => {
    if (box.current) box.current.indeterminate = selected > 0 && !isAll;
  }, [selected, isAll]);
  return (
    <input
      ref={box}
      type="checkbox"
      aria-label="Select all loaded executions"
      checked={isAll}
      onChange={() => onAll()}
    />
  );
}
