import { useQuery } from '@tanstack/react-query';
import { getWorkflowStats, type WorkflowStats } from '../../api/calls';
import { useLive } from '../../api/useLive';
import { Card } from '../../components/Card';
import { Empty } from '../../components/Empty';
import { Loaded } from '../../components/Loaded';
import { StateShares } from '../../components/StateShares';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { useQueryString } from '../../routing/useQueryString';
import { durationText } from '../../time';
import { NodeStatsTable } from './NodeStatsTable';
import { readSort } from './statsOrder';

/**
 * The server caches its counts for 5 seconds, so a fetch after an event may not include that event
 * yet.
 */
const AGAIN_MS = 6000;

export function StatsTab({ name, version }: { name: string; version: number }) {
  const [query, change] = useQueryString();
  const isAll = query.get('of') === 'all';
  useLive(['workflows', 'stats', name]);
  const statsQuery = useQuery({
    queryKey: ['workflows', 'stats', name, isAll ? null : version],
    queryFn: () => getWorkflowStats(name, isAll ? undefined : String(version)),
    placeholderData: (before) => before,
    staleTime: 5000,
    refetchInterval: AGAIN_MS,
  });
  return (
    <Card
      title="Statistics per node"
      actions={
        <label className="check">
          <input
            type="checkbox"
            checked={isAll}
            onChange={(event) =>
              change({ of: event.target.checked ? 'all' : null }, { replace: true })
            }
          />
          of all versions
        </label>
      }
    >
      <Loaded query={statsQuery}>
        {(stats) =>
          stats.sampled === 0 ? (
            <Empty title="No execution has ended yet">
              <Link to={paths.executions({ workflow: name })}>See running executions</Link>
            </Empty>
          ) : (
            <>
              <SampledExecutions stats={stats} />
              <NodeStatsTable
                rows={stats.nodes}
                sort={readSort(query.get('sort'))}
                onSort={(sort) => change({ sort }, { replace: true })}
              />
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

function SampledExecutions({ stats }: { stats: WorkflowStats }) {
  const countTexts = Object.entries(stats.states)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${state.toLowerCase()}`);
  return (
    <div className="wf-sampled">
      <p>
        The last {stats.sampled} executions: {countTexts.join(', ')}. Those that completed took{' '}
        <b className="number">{durationText(stats.p50_seconds)}</b> (p50),{' '}
        <b className="number">{durationText(stats.p95_seconds)}</b> (p95).
      </p>
      <StateShares counts={stats.states} />
    </div>
  );
}
