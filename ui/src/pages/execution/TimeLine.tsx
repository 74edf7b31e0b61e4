import { useQuery } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef, useSyncExternalStore } from 'react';
import { getHistory } from '../../api/calls';
import { Empty } from '../../components/basics';
import { hasEnded, stateClass } from '../../states';
import { durationText, useNow } from '../../time';
import { type Earlier, earlierAttempts, type Span, spansOf, ticks } from './spans';
import type { Run } from './useRun';

const ROW = 26;

type Props = { run: Run; selected: string | null; onSelect: (id: string) => void };

/** A Gantt chart: pale while a task waited in its queue, in its state's colour while it ran. */
export default function TimeLine({ run, selected, onSelect }: Props) {
  const { store, execution, state } = run;
  const version = useSyncExternalStore(store.subscribe, () => store.version);
  const now = useNow(hasEnded(state) ? 0 : 500);
  const scroll = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that nodes changed
  const spans = useMemo(() => spansOf(store.all()), [store, version]);
  const rows = useVirtualizer({
    count: spans.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const earlier = useEarlier(run, spans);
  if (spans.length === 0) return <Empty title="Nothing has run yet">Nodes show here as soon as they are queued.</Empty>;

  const start = Math.min(
    Date.parse(execution.started_at ?? execution.created_at),
    spans[0]?.queued ?? Number.POSITIVE_INFINITY,
  );
  const last = spans.reduce((most, span) => Math.max(most, span.to ?? (hasEnded(state) ? span.from : now)), start);
  const length = Math.max(last - start, 1);
  const scale = { start, length, now: hasEnded(state) ? last : now };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section ref={scroll} className="time-line" tabIndex={0} aria-label="Time line">
      <div className="time-axis" aria-hidden="true">
        {ticks(length, (scroll.current?.clientWidth ?? 1000) < 600 ? 2 : 6).map((at) => (
          <span key={at} style={{ left: `${(at / length) * 100}%` }}>
            {durationText(at / 1000)}
          </span>
        ))}
      </div>
      <ul style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((row) => {
          const span = spans[row.index] as Span;
          return (
            <li key={span.id} style={{ transform: `translateY(${row.start}px)` }}>
              <Row
                span={span}
                earlier={earlier.get(span.id) ?? NONE}
                scale={scale}
                chosen={span.id === selected}
                onSelect={onSelect}
              />
            </li>
          );
        })}
      </ul>
    </section>
  );
}

const NONE: Earlier[] = [];
const MOST_NODES = 150;
const MOST_LINES = 500;

/** Of a small execution in which something was tried again; what is large shows only last attempts. */
function useEarlier(run: Run, spans: Span[]): Map<string, Earlier[]> {
  const id = run.execution.execution_id;
  const retried = spans.reduce((sum, span) => sum + (span.attempt > 1 ? span.attempt : 0), 0);
  const history = useQuery({
    queryKey: ['execution', id, 'attempts', retried],
    queryFn: () => getHistory(id, 0, MOST_LINES),
    enabled: retried > 0 && spans.length <= MOST_NODES,
  });
  return useMemo(() => earlierAttempts(history.data?.items ?? []), [history.data]);
}

type Scale = { start: number; length: number; now: number };

type RowProps = { span: Span; earlier: Earlier[]; scale: Scale; chosen: boolean; onSelect: (id: string) => void };

function Row({ span, earlier, scale, chosen, onSelect }: RowProps) {
  const end = span.to ?? scale.now;
  const at = (time: number) => `${((time - scale.start) / scale.length) * 100}%`;
  const wide = (from: number, to: number) => `${(Math.max(to - from, 0) / scale.length) * 100}%`;
  const said = `${span.id}: ${span.state.toLowerCase()}, ${durationText((end - span.from) / 1000)}${span.attempt > 1 ? `, attempt ${span.attempt}` : ''}`;
  return (
    <button
      type="button"
      className={chosen ? 'time-row chosen' : 'time-row'}
      title={said}
      onClick={() => onSelect(span.id)}
    >
      <span className="time-name">{span.id}</span>
      <span className="time-track">
        {earlier.map((each) => (
          <span
            key={each.to}
            className={`time-bar time-earlier ${stateClass('FAILED')}`}
            style={{ left: at(each.from), width: wide(each.from, each.to) }}
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
