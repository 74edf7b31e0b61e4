import { type PointerEvent, type ReactNode, useState } from 'react';
import { bucketText } from './timeRanges';

type FrameProps = {
  times: string[];
  bucketSeconds: number;
  /** The highest value, as text. */
  top: string;
  /** Lines have their points on the edges, bars their middles in the buckets. */
  kind: 'bars' | 'lines';
  /** What is known of a bucket; shown while the pointer is over it. */
  readout: (index: number) => ReactNode;
  children: ReactNode;
};

/** A chart with its scale: the highest value, the times, and the values under the pointer. */
export function ChartFrame({ times, bucketSeconds, top, kind, readout, children }: FrameProps) {
  const [hovered, setHovered] = useState<number | null>(null);
  const count = times.length;
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const index = kind === 'bars' ? Math.floor(share * count) : Math.round(share * (count - 1));
    setHovered(Math.min(Math.max(index, 0), count - 1));
  };
  const shown = hovered !== null && hovered < count ? hovered : null;
  const leftOf = (index: number) =>
    kind === 'bars' ? (index + 0.5) / count : index / Math.max(count - 1, 1);
  const mark = (index: number) => (times[index] ? bucketText(times[index], bucketSeconds) : '');
  return (
    <figure className="overview-chart">
      <span className="overview-chart-top number" aria-hidden="true">
        {top}
      </span>
      <div
        className="overview-chart-plot"
        onPointerMove={onPointerMove}
        onPointerLeave={() => setHovered(null)}
      >
        {children}
        {shown !== null && (
          <span className="overview-chart-cursor" style={{ left: `${leftOf(shown) * 100}%` }} />
        )}
      </div>
      <figcaption className="overview-chart-times number">
        {shown === null ? (
          <>
            <span>{mark(0)}</span>
            <span>{mark(Math.floor(count / 2))}</span>
            <span>now</span>
          </>
        ) : (
          <span className="overview-chart-readout">
            <strong>{mark(shown)}</strong> {readout(shown)}
          </span>
        )}
      </figcaption>
    </figure>
  );
}
