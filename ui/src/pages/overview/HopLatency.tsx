import type { Stats } from '../../api/calls';
import { Card } from '../../components/Card';
import { largestValue, type Point, Sparkline } from '../../components/Sparkline';
import { ChartFrame } from './ChartFrame';
import { CurrentValue } from './CurrentValue';
import { msText } from './numbers';
import { bucketText } from './timeRanges';

/** The time from when a node is ready until a worker starts it. */
export function HopLatency({ stats }: { stats: Stats }) {
  const { hops, bucket_seconds } = stats;
  const pointsOf = (name: 'p50_ms' | 'p95_ms'): Point[] =>
    hops.series.map((bucket) => ({
      label: bucketText(bucket.at, bucket_seconds),
      value: bucket[name],
    }));
  const p50 = pointsOf('p50_ms');
  const p95 = pointsOf('p95_ms');
  const valueMax = Math.max(largestValue(p50), largestValue(p95));
  return (
    <Card
      title={
        <span title="The time from when a node is ready until a worker starts it">Hop latency</span>
      }
      actions={
        <>
          <CurrentValue name="p50" value={msText(hops.p50_ms)} dot="p50" />
          <CurrentValue name="p95" value={msText(hops.p95_ms)} dot="p95" />
        </>
      }
    >
      <ChartFrame
        kind="lines"
        times={hops.series.map((bucket) => bucket.at)}
        bucketSeconds={bucket_seconds}
        top={hops.samples ? msText(valueMax) : ''}
        readout={(index) => {
          const bucket = hops.series[index];
          if (!bucket || bucket.p50_ms === null) return 'no node started';
          return `p50 ${msText(bucket.p50_ms)}, p95 ${msText(bucket.p95_ms)}`;
        }}
      >
        <Sparkline
          points={p50}
          valueMax={valueMax}
          unit=" ms"
          label={`Hop latency, p50: ${msText(hops.p50_ms)}`}
        />
        <Sparkline
          points={p95}
          valueMax={valueMax}
          unit=" ms"
          className="overview-p95"
          label={`Hop latency, p95: ${msText(hops.p95_ms)}`}
        />
      </ChartFrame>
    </Card>
  );
}
