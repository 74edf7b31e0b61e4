import type { Stats } from '../../api/calls';
import { Card } from '../../components/Card';
import { Sparkline } from '../../components/Sparkline';
import { ChartFrame } from './ChartFrame';
import { CurrentValue } from './CurrentValue';
import { paceOf, rateText } from './numbers';
import { bucketText } from './timeRanges';

/** How many executions were started per second or per minute. */
export function Throughput({ stats }: { stats: Stats }) {
  const { series, bucket_seconds } = stats;
  const pace = paceOf(stats);
  const text = (rate: number | undefined) => `${rateText(rate ?? 0)} ${pace.unit}`;
  const points = series.map((bucket, index) => ({
    label: bucketText(bucket.at, bucket_seconds),
    value: pace.values[index] ?? 0,
  }));
  return (
    <Card title="Throughput" actions={<CurrentValue name="now" value={text(pace.now)} />}>
      <ChartFrame
        kind="lines"
        times={series.map((bucket) => bucket.at)}
        bucketSeconds={bucket_seconds}
        top={text(pace.max)}
        readout={(index) => text(pace.values[index])}
      >
        <Sparkline
          points={points}
          label={`Executions started: now ${text(pace.now)}, at most ${text(pace.max)}`}
        />
      </ChartFrame>
    </Card>
  );
}
