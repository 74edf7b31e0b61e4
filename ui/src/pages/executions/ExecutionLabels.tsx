import type { ListedExecution } from '../../api/calls';
import type { RowProps } from './ExecutionRow';
import { labelText } from './filters';

const LABELS_SHOWN_MAX = 3;

export function ExecutionLabels({
  labels,
  onLabel,
}: {
  labels: ListedExecution['labels'];
  onLabel?: RowProps['onLabel'];
}) {
  const texts = Object.entries(labels).map(([key, value]) => labelText(key, value));
  if (!texts.length) return null;
  const more = texts.slice(LABELS_SHOWN_MAX);
  return (
    <span className="xs-tags">
      {texts.slice(0, LABELS_SHOWN_MAX).map((text) =>
        onLabel ? (
          <button
            key={text}
            type="button"
            className="tag"
            title={`Show only ${text}`}
            onClick={() => onLabel(text)}
          >
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
