// Small charts as SVG: their numbers are few, and a library would weigh more than all the rest.
import { stateClass } from '../states';

export type Point = { label: string; value: number | null };

type SparklineProps = { points: Point[]; label: string; unit?: string; most?: number; className?: string };

export function mostOf(points: Point[]): number {
  return Math.max(...points.map((each) => each.value ?? 0), 1e-9);
}

/** A line of values over time; gaps where there are none. Lines that lie over each other share their `most`. */
export function Sparkline({ points, label, unit = '', most = mostOf(points), className = '' }: SparklineProps) {
  const x = (index: number) => (points.length > 1 ? (index / (points.length - 1)) * 100 : 50);
  const y = (value: number) => 30 - (value / most) * 27;
  const parts: string[] = [];
  let open = false;
  points.forEach((point, index) => {
    if (point.value === null) {
      open = false;
      return;
    }
    parts.push(`${open ? 'L' : 'M'}${x(index).toFixed(2)} ${y(point.value).toFixed(2)}`);
    open = true;
  });
  const dots = points.length <= 1 || parts.every((each) => each.startsWith('M'));
  return (
    <svg
      className={`sparkline ${className}`}
      viewBox="0 0 100 32"
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path d={parts.join('')} vectorEffect="non-scaling-stroke" />
      {dots &&
        points.map((point, index) =>
          point.value === null ? null : (
            <line
              key={point.label}
              x1={x(index)}
              x2={x(index) + 0.8}
              y1={y(point.value)}
              y2={y(point.value)}
              vectorEffect="non-scaling-stroke"
            />
          ),
        )}
      {points.map((point, index) => (
        <rect
          key={point.label}
          className="hit"
          x={x(index) - 50 / points.length}
          y="0"
          width={100 / points.length}
          height="32"
        >
          <title>{`${point.label}: ${point.value === null ? 'nothing' : `${point.value}${unit}`}`}</title>
        </rect>
      ))}
    </svg>
  );
}

export type Bar = { label: string; parts: { state: string; value: number }[] };

/** Stacked bars by state, one per stretch of time. */
export function StackedBars({ bars, label }: { bars: Bar[]; label: string }) {
  const totals = bars.map((bar) => bar.parts.reduce((sum, part) => sum + part.value, 0));
  const most = Math.max(...totals, 1);
  const width = 100 / Math.max(bars.length, 1);
  return (
    <svg className="bars" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={label}>
      {bars.map((bar, index) => {
        let top = 40;
        const said = bar.parts.filter((part) => part.value).map((part) => `${part.value} ${part.state.toLowerCase()}`);
        return (
          <g key={bar.label}>
            {bar.parts.map((part) => {
              const height = (part.value / most) * 38;
              top -= height;
              return height ? (
                <rect
                  key={part.state}
                  className={`bar ${stateClass(part.state)}`}
                  x={index * width + width * 0.1}
                  y={top}
                  width={width * 0.8}
                  height={height}
                />
              ) : null;
            })}
            <rect className="hit" x={index * width} y="0" width={width} height="40">
              <title>{`${bar.label}: ${said.join(', ') || 'none'}`}</title>
            </rect>
          </g>
        );
      })}
    </svg>
  );
}

/** Shares of states in one line, for a group of nodes or a workflow. */
export function StateShares({ counts }: { counts: Record<string, number> }) {
  const entries = Object.entries(counts).filter(([, count]) => count > 0);
  const said = entries.map(([state, count]) => `${count} ${state.toLowerCase()}`).join(', ');
  return (
    <span className="shares" role="img" aria-label={said || 'none'} title={said}>
      {entries.map(([state, count]) => (
        <span key={state} className={`share ${stateClass(state)}`} style={{ flexGrow: count }} />
      ))}
    </span>
  );
}
