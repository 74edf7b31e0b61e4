import type { Signal } from '../../../api/calls';
import { JsonView } from '../../../components/JsonView';
import { Time } from '../../../components/Time';

type TableProps = { signals: readonly Signal[]; onSelect?: (nodeId: string) => void };

export function SignalTable({ signals, onSelect }: TableProps) {
  return (
    <ul className="signals">
      {signals.map((signal) => (
        <li key={signal.number}>
          <p className="signal-head">
            <span className="faint number">{signal.number}</span>
            <strong>{signal.name}</strong>
            <SignalState signal={signal} onSelect={onSelect} />
            {signal.correlation !== null && <span className="tag">{signal.correlation}</span>}
            <span className="faint">
              <Time at={signal.at} /> {signal.from && `from ${signal.from}`}
            </span>
          </p>
          {signal.payload !== null && (
            <details>
              <summary>Payload</summary>
              <JsonView
                value={signal.payload}
                name={`payload of signal ${signal.number}`}
                search={false}
              />
            </details>
          )}
        </li>
      ))}
    </ul>
  );
}

function SignalState({
  signal: { state, node_id: nodeId },
  onSelect,
}: {
  signal: Signal;
  onSelect: TableProps['onSelect'];
}) {
  if (nodeId === null || !onSelect) return <span className="tag">{nodeId ?? state}</span>;
  return (
    <span>
      taken by{' '}
      <button type="button" className="as-link" onClick={() => onSelect(nodeId)}>
        {nodeId}
      </button>
    </span>
  );
}
