import type { Stats } from '../../api/calls';
import { Card } from '../../components/basics';
import { mostOf, type Point, Sparkline } from '../../components/charts';
import { ChartFrame } from './ChartFrame';
import { msText, paceOf, rateText } from './figures';
import { bucketText } from './windows';

/** How many executions are started in a second or a minute. */
export function Throughput({ stats }: { stats: Stats }) {
  const { series, bucket_seconds } = stats;
  const pace = paceOf(stats);
  const text = (rate: number | undefined) => `${rateText(rate ?? 0)} ${pace.unit}`;
  const points = series.map((bucket, index) => ({
    label: bucketText(bucket.at, bucket_seconds),
    value: pace.values[index] ?? 0,
  }));
  return (
    <Card title="Throughput" actions={<Current name="now" value={text(pace.now)} />}>
      <ChartFrame
        kind="lines"
        times={series.map((bucket) => bucket.at)}
        bucketSeconds={bucket_seconds}
        top={text(pace.most)}
        readout={(index) => text(pace.values[index])}
      >
        <Sparkline points={points} label={`Executions started: now ${text(pace.now)}, at most ${text(pace.most)}`} />
      </ChartFrame>
    </Card>
  );
}

/** From the moment that a node may start to its start by a worker. */
export function HopLatency({ stats }: { stats: Stats }) {
  const { hops, bucket_seconds } = stats;
  const pointsOf = (name: 'p50_ms' | 'p95_ms'): Point[] =>
    hops.series.map((bucket) => ({ label: bucketText(bucket.at, bucket_seconds), value: bucket[name] }));
  const [p50, p95] = [pointsOf('p50_ms'), pointsOf('p95_ms')];
  const most = Math.max(mostOf(p50), mostOf(p95));
  return (
    <Card
      title={<span title="From the moment that a node may start to its start by a worker">Hop latency</span>}
      actions={
        <>
          <Current name="p50" value={msText(hops.p50_ms)} dot="p50" />
          <Current name="p95" value={msText(hops.p95_ms)} dot="p95" />
        </>
      }
    >
      <ChartFrame
        kind="lines"
        times={hops.series.map((bucket) => bucket.at)}
        bucketSeconds={bucket_seconds}
        top={hops.samples ? msText(most) : ''}
        readout={(index) => {
          const bucket = hops.series[index];
          if (!bucket || bucket.p50_ms === null) return 'no node started';
          return `p50 ${msText(bucket.p50_ms)}, p95 ${msText(bucket.p95_ms)}`;
        }}
      >
        <Sparkline points={p50} most={most} unit=" ms" label={`Hop latency, p50: ${msText(hops.p50_ms)}`} />
        <Sparkline
          points={p95}
          most={most}
          unit=" ms"
          className="overview-p95"
          label={`Hop latency, p95: ${msText(hops.p95_ms)}`}
        />
      </ChartFrame>
    </Card>
  );
}

function Current({ name, value, dot }: { name: string; value: string; dot?: 'p50' | 'p95' }) {
  return (
    <span className="overview-current">
      {dot && <span className={`overview-dot ${dot}`} aria-hidden="true" />}
      <span className="faint">{name}</span> <strong className="number">{value}</strong>
    </span>
  );
}
