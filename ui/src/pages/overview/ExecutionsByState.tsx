import type { Stats } from '../../api/calls';
import { Card } from '../../components/Card';
import { StackedBars } from '../../components/StackedBars';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { stateClass } from '../../states';
import { ChartFrame } from './ChartFrame';
import { countText, STACK, sum } from './numbers';
import { bucketText } from './timeRanges';

/** Executions by the time of their creation and their current state. */
export function ExecutionsByState({ stats, when }: { stats: Stats; when: string }) {
  const { series, totals, bucket_seconds, since } = stats;
  const countTexts = (counts: Stats['totals']) =>
    STACK.filter((state) => counts[state]).map(
      (state) => `${counts[state]} ${state.toLowerCase()}`,
    );
  const bars = series.map((bucket) => ({
    label: bucketText(bucket.at, bucket_seconds),
    parts: STACK.map((state) => ({ state, value: bucket[state] })),
  }));
  return (
    <Card
      title="Executions by state"
      actions={
        <ul className="overview-legend">
          {STACK.filter(
            (state) => totals[state] || state === 'COMPLETED' || state === 'FAILED',
          ).map((state) => (
            <li key={state}>
              <Link to={paths.executions({ state, since })} className={stateClass(state)}>
                <span className="overview-dot" aria-hidden="true" />
                {state.toLowerCase()} <span className="number">{countText(totals[state])}</span>
              </Link>
            </li>
          ))}
        </ul>
      }
    >
      <ChartFrame
        kind="bars"
        times={series.map((bucket) => bucket.at)}
        bucketSeconds={bucket_seconds}
        top={countText(Math.max(...series.map(sum), 0))}
        readout={(index) => {
          const bucket = series[index];
          return (bucket && countTexts(bucket).join(', ')) || 'none';
        }}
      >
        <StackedBars
          bars={bars}
          label={`Executions created in ${when}: ${countTexts(totals).join(', ') || 'none'}`}
        />
      </ChartFrame>
      {stats.truncated && (
        <p className="faint overview-note">
          This time range has more executions than the server counts. The numbers include only the
          newest ones.
        </p>
      )}
    </Card>
  );
}
