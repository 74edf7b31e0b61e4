import { memo } from 'react';
import type { ListedExecution } from '../../api/calls';
import { Elapsed } from '../../components/Elapsed';
import { StateBadge } from '../../components/StateBadge';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { ExecutionLabels } from './ExecutionLabels';
import { shortId } from './filters';

export type RowProps = {
  row: ListedExecution;
  isSelected?: boolean;
  /** Without it rows can't be selected. */
  onSelect?: ((executionId: string, isRange: boolean) => void) | undefined;
  onLabel?: ((label: string) => void) | undefined;
  onCursor?: ((executionId: string) => void) | undefined;
};

export const ExecutionRow = memo(function ExecutionRow({
  row,
  isSelected = false,
  onSelect,
  onLabel,
  onCursor,
}: RowProps) {
  const executionId = row.execution_id;
  return (
    <tr className={isSelected ? 'xs-row selected' : 'xs-row'}>
      {onSelect && (
        <td className="xs-check">
          <input
            type="checkbox"
            aria-label={`Select execution ${executionId}`}
            checked={isSelected}
            onChange={() => {}}
            onClick={(event) => onSelect(executionId, event.shiftKey)}
          />
        </td>
      )}
      <td className="xs-state">
        <StateBadge state={row.state} />
      </td>
      <td className="xs-workflow">
        <Link to={paths.workflow(row.workflow, { version: String(row.version) })}>
          {row.workflow}
          <span className="faint">@{row.version}</span>
        </Link>
      </td>
      <td className="xs-id">
        <Link
          to={paths.execution(executionId)}
          className="xs-open"
          data-row={executionId}
          title={executionId}
          aria-label={`${shortId(executionId)}, an execution of ${row.workflow}`}
          onFocus={() => onCursor?.(executionId)}
        >
          <code>{shortId(executionId)}</code>
        </Link>
      </td>
      <td className="xs-labels">
        <ExecutionLabels labels={row.labels} onLabel={onLabel} />
      </td>
      <td className="xs-started">
        <Time at={row.started_at ?? row.created_at} />
      </td>
      <td className="xs-duration right">
        <Elapsed from={row.started_at} to={row.finished_at} />
      </td>
      <td className="xs-error">
        {row.error && <span title={row.error.message}>{row.error.message}</span>}
      </td>
    </tr>
  );
});
