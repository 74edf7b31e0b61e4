import { stateClass } from '../../states';
import { durationText } from '../../time';
import type { EarlierAttempt, Span } from './spans';

type Scale = { start: number; length: number; now: number };

type RowProps = {
  span: Span;
  earlier: EarlierAttempt[];
  scale: Scale;
  chosen: boolean;
  onSelect: (nodeId: string) => void;
};

export function TimeLineRow({ span, earlier, scale, chosen, onSelect }: RowProps) {
  const end = span.to ?? scale.now;
  const at = (time: number) => `${((time - scale.start) / scale.length) * 100}%`;
  const wide = (from: number, to: number) => `${(Math.max(to - from, 0) / scale.length) * 100}%`;
  const duration = durationText((end - span.from) / 1000);
  const attempt = span.attempt > 1 ? `, attempt ${span.attempt}` : '';
  const title = `${span.id}: ${span.state.toLowerCase()}, ${duration}${attempt}`;
  return (
    <button
      type="button"
      className={chosen ? 'time-row chosen' : 'time-row'}
      title={title}
      onClick={() => onSelect(span.id)}
    >
      <span className="time-name">{span.id}</span>
      <span className="time-track">
        {earlier.map((earlierAttempt) => (
          <span
            key={earlierAttempt.to}
            className={`time-bar time-earlier ${stateClass('FAILED')}`}
            style={{
              left: at(earlierAttempt.from),
              width: wide(earlierAttempt.from, earlierAttempt.to),
            }}
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
      <span className="time-took number">{duration}</span>
    </button>
  );
}
