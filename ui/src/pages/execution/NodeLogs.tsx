import { useQuery } from '@tanstack/react-query';
import { getLogs } from '../../api/calls';
import { CopyButton } from '../../components/CopyButton';
import { Loaded } from '../../components/Loaded';
import { nodeHasEnded } from '../../states';
import { LogText } from './LogText';
import type { Run } from './useRun';

const LOOK_MS = 1000;

/** What each attempt logged; of one that runs, what it has logged so far. */
export function NodeLogs({ run, id, state }: { run: Run; id: string; state: string }) {
  const runs = !nodeHasEnded(state);
  const logs = useQuery({
    queryKey: ['execution', run.execution.execution_id, 'node', id, 'logs', runs],
    queryFn: () => getLogs(run.execution.execution_id, id),
    refetchInterval: runs ? LOOK_MS : false,
  });
  return (
    <Loaded query={logs} what="Reading the logs">
      {({ items }) =>
        items.length === 0 ? (
          <p className="faint">
            {runs ? 'Nothing logged yet.' : 'Nothing was logged.'} Handlers log with <code>ctx.log.info(…)</code> or{' '}
            <code>logging</code>.
          </p>
        ) : (
          <div className="node-parts">
            {items.map((each) => (
              <section key={each.attempt}>
                <header className="card-head">
                  <h3>
                    Attempt {each.attempt} {each.live && <span className="faint">so far</span>}
                  </h3>
                  <CopyButton text={each.text} label="Copy the log" />
                </header>
                <LogText text={each.text} follows={each.live ?? false} />
              </section>
            ))}
          </div>
        )
      }
    </Loaded>
  );
}
