export function CurrentValue({
  name,
  value,
  dot,
}: {
  name: string;
  value: string;
  dot?: 'p50' | 'p95';
}) {
  return (
    <span className="overview-current">
      {dot && <span className={`overview-dot ${dot}`} aria-hidden="true" />}
      <span className="faint">{name}</span> <strong className="number">{value}</strong>
    </span>
  );
}
