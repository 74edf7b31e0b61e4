import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { getStats, listExecutions, type Stats } from '../../api/calls';
import { useLive } from '../../api/live';
import { Loaded, Page, useTitle } from '../../components/basics';
import { Link, paths, queryString, useQueryString } from '../../routing';
import { FailureRates } from './FailureRates';
import { Figures } from './Figures';
import { FirstSteps } from './FirstSteps';
import { isQuiet } from './figures';
import { HopLatency, Throughput } from './Pace';
import { Timeline } from './Timeline';
import { DEFAULT_WINDOW, WINDOWS, type Window, windowOf } from './windows';
import './overview.css';

/** The fleet and the clock move without any execution's doing. */
const AGAIN_MS = 5000;

export default function Overview() {
  useTitle('Overview');
  const [query] = useQueryString();
  const chosen = windowOf(query.get('window'));
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
          <LiveSign live={live} />
          <WindowSwitch chosen={chosen} />
        </>
      }
    >
      <Loaded query={stats}>{(data) => <Standing stats={data} chosen={chosen} />}</Loaded>
    </Page>
  );
}

function Standing({ stats, chosen }: { stats: Stats; chosen: Window }) {
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
          <Timeline stats={stats} when={chosen.long} />
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

function WindowSwitch({ chosen }: { chosen: Window }) {
  return (
    <nav className="overview-windows" aria-label="Time shown">
      {WINDOWS.map((each) => (
        <Link
          key={each.id}
          to={paths.overview() + queryString({ window: each === DEFAULT_WINDOW ? null : each.id })}
          aria-current={each === chosen ? 'true' : undefined}
          title={each.long}
        >
          {each.label}
        </Link>
      ))}
    </nav>
  );
}

function LiveSign({ live }: { live: boolean }) {
  const help = live ? 'Follows what happens' : 'The stream of events is away; read every few seconds';
  return (
    <span className={live ? 'overview-live on' : 'overview-live'} title={help} role="status">
      {live ? 'live' : 'connecting'}
    </span>
  );
}
