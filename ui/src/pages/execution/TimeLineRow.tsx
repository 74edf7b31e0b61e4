import { stateClass } from '../../states';
import { durationText } from '../../time';
import type { EarlierAttempt, Span } from './spans';

type Scale = { start: number; length: number; now: number };

type RowProps = {
  span: Span;
  earlier: EarlierAttempt[];
  scale: Scale;
  chosen: boolean;
  onSelect: (id: string) => void;
};

export function TimeLineRow({ span, earlier, scale, chosen, onSelect }: RowProps) {
  const end = span.to ?? scale.now;
  const at = (time: number) => `${((time - scale.start) / scale.length) * 100}%`;
  const wide = (from: number, to: number) => `${(Math.max(to - from, 0) / scale.length) * 100}%`;
  const title = `${span.id}: ${span.state.toLowerCase()}, ${durationText((end - span.from) / 1000)}${span.attempt > 1 ? `, attempt ${span.attempt}` : ''}`;
  return (
    <button
      type="button"
      className={chosen ? 'time-row chosen' : 'time-row'}
      title={title}
      onClick={() => onSelect(span.id)}
    >
      <span className="time-name">{span.id}</span>
      <span className="time-track">
        {earlier.map((attempt) => (
          <span
            key={attempt.to}
            className={`time-bar time-earlier ${stateClass('FAILED')}`}
            style={{ left: at(attempt.from), width: wide(attempt.from, attempt.to) }}
          />
        ))}
        {span.queued !== null && span.queued < span.from && (
          <span
            className={`time-wait ${stateClass('QUEUED')}`}
            style={{ left: at(span.queued), width: wide(span.queued, span.from) }}
          />
        )}
        <span
          className={`time-bar ${stateClass(span.state)}`}
          style={{ left: at(span.from), width: wide(span.from, end) }}
        />
      </span>
      <span className="time-took number">{durationText((end - span.from) / 1000)}</span>
    </button>
  );
}
