import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef, useSyncExternalStore } from 'react';
import { Empty } from '../../components/Empty';
import { hasEnded } from '../../states';
import { durationText } from '../../time';
import { useNow } from '../../useNow';
import { type EarlierAttempt, type Span, spansOf, ticks } from './spans';
import { TimeLineRow } from './TimeLineRow';
import { useEarlierAttempts } from './useEarlierAttempts';
import type { Run } from './useRun';

const ROW = 26;

type Props = { run: Run; selected: string | null; onSelect: (nodeId: string) => void };

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
  const earlier = useEarlierAttempts(run, spans);
  if (spans.length === 0) {
    return <Empty title="Nothing has run yet">Nodes appear here as soon as they are queued.</Empty>;
  }

  const start = Math.min(
    Date.parse(execution.started_at ?? execution.created_at),
    spans[0]?.queued ?? Number.POSITIVE_INFINITY,
  );
  const last = spans.reduce(
    (most, span) => Math.max(most, span.to ?? (hasEnded(state) ? span.from : now)),
    start,
  );
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
              <TimeLineRow
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

const NONE: EarlierAttempt[] = [];
