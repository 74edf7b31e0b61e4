import { useQuery } from '@tanstack/react-query';
import { getLogs } from '../../api/calls';
import { CopyButton } from '../../components/CopyButton';
import { Loaded } from '../../components/Loaded';
import { nodeHasEnded } from '../../states';
import { LogText } from './LogText';
import type { Run } from './useRun';

const LOOK_MS = 1000;

/** The log of each attempt; of a running one, the log so far. */
export function NodeLogs({ run, nodeId, state }: { run: Run; nodeId: string; state: string }) {
  const runs = !nodeHasEnded(state);
  const logs = useQuery({
    queryKey: ['execution', run.execution.execution_id, 'node', nodeId, 'logs', runs],
    queryFn: () => getLogs(run.execution.execution_id, nodeId),
    refetchInterval: runs ? LOOK_MS : false,
  });
  return (
    <Loaded query={logs} what="Loading the logs">
      {({ items }) =>
        items.length === 0 ? (
          <p className="faint">
            {runs ? 'Nothing logged yet.' : 'Nothing was logged.'} Handlers log with{' '}
            <code>ctx.log.info(…)</code> or <code>logging</code>.
          </p>
        ) : (
          <div className="node-parts">
            {items.map((item) => (
              <section key={item.attempt}>
                <header className="card-head">
                  <h3>
                    Attempt {item.attempt} {item.live && <span className="faint">so far</span>}
                  </h3>
                  <CopyButton text={item.text} label="Copy the log" />
                </header>
                <LogText text={item.text} follows={item.live ?? false} />
              </section>
            ))}
          </div>
        )
      }
    </Loaded>
  );
}
