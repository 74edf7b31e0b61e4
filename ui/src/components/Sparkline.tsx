export type Point = { label: string; value: number | null };

type SparklineProps = {
  points: Point[];
  label: string;
  unit?: string;
  valueMax?: number;
  className?: string;
};

export function largestValue(points: Point[]): number {
  return Math.max(...points.map((point) => point.value ?? 0), 1e-9);
}

/**
 * A line of values over time, with gaps where there are none. Lines in one chart share their
 * `valueMax`.
 */
export function Sparkline({
  points,
  label,
  unit = '',
  valueMax = largestValue(points),
  className = '',
}: SparklineProps) {
  const x = (index: number) => (points.length > 1 ? (index / (points.length - 1)) * 100 : 50);
  const y = (value: number) => 30 - (value / valueMax) * 27;
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
  const dots = points.length <= 1 || parts.every((part) => part.startsWith('M'));
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
          <title>{`${point.label}: ${valueText(point.value, unit)}`}</title>
        </rect>
      ))}
    </svg>
  );
}

function valueText(value: number | null, unit: string): string {
  return value === null ? 'nothing' : `${value}${unit}`;
}
