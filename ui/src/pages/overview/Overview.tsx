import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { getStats, listExecutions, type Stats } from '../../api/calls';
import { useLive } from '../../api/useLive';
import { Loaded } from '../../components/Loaded';
import { Page } from '../../components/Page';
import { useTitle } from '../../components/useTitle';
import { useQueryString } from '../../routing/useQueryString';
import { ExecutionsByState } from './ExecutionsByState';
import { FailureRates } from './FailureRates';
import { Figures } from './Figures';
import { FirstSteps } from './FirstSteps';
import { HopLatency } from './HopLatency';
import { LiveIndicator } from './LiveIndicator';
import { isQuiet } from './numbers';
import { Throughput } from './Throughput';
import { TimeRangeSwitch } from './TimeRangeSwitch';
import { type TimeRange, timeRangeOf } from './timeRanges';
import './overview.css';

/** Workers and the time range change without an event of an execution. */
const AGAIN_MS = 5000;

export default function Overview() {
  useTitle('Overview');
  const [query] = useQueryString();
  const chosen = timeRangeOf(query.get('window'));
  const live = useLive(['stats']);
  const stats = useQuery({
    queryKey: ['stats', chosen.seconds, chosen.buckets],
    queryFn: () => getStats(chosen.seconds, chosen.buckets),
    placeholderData: keepPreviousData,
    refetchInterval: AGAIN_MS,
  });
  return (
    <Page
      title="Overview"
      actions={
        <>
          <LiveIndicator live={live} />
          <TimeRangeSwitch chosen={chosen} />
        </>
      }
    >
      <Loaded query={stats}>{(data) => <Statistics stats={data} chosen={chosen} />}</Loaded>
    </Page>
  );
}

function Statistics({ stats, chosen }: { stats: Stats; chosen: TimeRange }) {
  const quiet = isQuiet(stats);
  const ever = useQuery({
    queryKey: ['executions', 'ever'],
    queryFn: () => listExecutions({}, null, 1),
    enabled: quiet,
    refetchInterval: quiet ? AGAIN_MS : false,
  });
  const isFirstVisit = quiet && ever.data?.items.length === 0;
  return (
    <>
      <Figures stats={stats} span={chosen.label} />
      {isFirstVisit ? (
        <FirstSteps />
      ) : (
        <>
          <ExecutionsByState stats={stats} when={chosen.long} />
          <div className="grid">
            <Throughput stats={stats} />
            <HopLatency stats={stats} />
          </div>
          <FailureRates stats={stats} when={chosen.long} />
        </>
      )}
    </>
  );
}
