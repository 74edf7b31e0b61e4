import { memo } from 'react';
import type { ListedExecution } from '../../api/calls';
import { Elapsed, StateBadge, Time } from '../../components/basics';
import { Link, paths } from '../../routing';
import { labelText, shortId } from './filters';

const LABELS_SHOWN = 3;

type RowProps = {
  row: ListedExecution;
  isSelected?: boolean;
  /** Without it rows can't be selected. */
  onSelect?: ((id: string, more: boolean) => void) | undefined;
  onLabel?: ((label: string) => void) | undefined;
  onCursor?: ((id: string) => void) | undefined;
};

export const ExecutionRow = memo(function ExecutionRow({
  row,
  isSelected = false,
  onSelect,
  onLabel,
  onCursor,
}: RowProps) {
  const id = row.execution_id;
  return (
    <tr className={isSelected ? 'xs-row selected' : 'xs-row'}>
      {onSelect && (
        <td className="xs-check">
          <input
            type="checkbox"
            aria-label={`Select execution ${id}`}
            checked={isSelected}
            onChange={() => {}}
            onClick={(event) => onSelect(id, event.shiftKey)}
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
          to={paths.execution(id)}
          className="xs-open"
          data-row={id}
          title={id}
          aria-label={`${shortId(id)}, an execution of ${row.workflow}`}
          onFocus={() => onCursor?.(id)}
        >
          <code>{shortId(id)}</code>
        </Link>
      </td>
      <td className="xs-labels">
        <Labels labels={row.labels} onLabel={onLabel} />
      </td>
      <td className="xs-started">
        <Time at={row.started_at ?? row.created_at} />
      </td>
      <td className="xs-duration right">
        <Elapsed from={row.started_at} to={row.finished_at} />
      </td>
      <td className="xs-error">{row.error && <span title={row.error.message}>{row.error.message}</span>}</td>
    </tr>
  );
});

function Labels({ labels, onLabel }: { labels: Record<string, unknown>; onLabel?: RowProps['onLabel'] }) {
  const texts = Object.entries(labels).map(([key, value]) => labelText(key, value));
  if (!texts.length) return null;
  const more = texts.slice(LABELS_SHOWN);
  return (
    <span className="xs-tags">
      {texts.slice(0, LABELS_SHOWN).map((text) =>
        onLabel ? (
          <button key={text} type="button" className="tag" title={`Only ${text}`} onClick={() => onLabel(text)}>
            {text}
          </button>
        ) : (
          <span key={text} className="tag" title={text}>
            {text}
          </span>
        ),
      )}
      {more.length > 0 && (
        <span className="faint" title={more.join('\n')}>
          +{more.length}
        </span>
      )}
    </span>
  );
}
