import { stateClass } from '../states';

export type Bar = { label: string; parts: { state: string; value: number }[] };

/** Stacked bars by state, one for each bucket of time. */
export function StackedBars({ bars, label }: { bars: Bar[]; label: string }) {
  const totals = bars.map((bar) => bar.parts.reduce((sum, part) => sum + part.value, 0));
  const totalMax = Math.max(...totals, 1);
  const width = 100 / Math.max(bars.length, 1);
  return (
    <svg
      className="bars"
      viewBox="0 0 100 40"
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {bars.map((bar, index) => {
        let top = 40;
        const partTexts = bar.parts
          .filter((part) => part.value)
          .map((part) => `${part.value} ${part.state.toLowerCase()}`);
        return (
          <g key={bar.label}>
            {bar.parts.map((part) => {
              const height = (part.value / totalMax) * 38;
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
              <title>{`${bar.label}: ${partTexts.join(', ') || 'none'}`}</title>
            </rect>
          </g>
        );
      })}
    </svg>
  );
}
