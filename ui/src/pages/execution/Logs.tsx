import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { getLogs } from '../../api/calls';
import { CopyButton, Loaded } from '../../components/basics';
import { nodeHasEnded } from '../../states';
import type { Run } from './useRun';

const LOOK_MS = 1000;

/** What each attempt logged; of one that runs, what it has logged so far. */
export function Logs({ run, id, state }: { run: Run; id: string; state: string }) {
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

/** Stays at its end while lines come in, unless the reader has scrolled up. */
function LogText({ text, follows }: { text: string; follows: boolean }) {
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new text is what moves the end
  useEffect(() => {
    if (follows && atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, follows]);
  return (
    <pre
      ref={box}
      className="text-block log"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        atEnd.current = scrollHeight - scrollTop - clientHeight < 24;
      }}
    >
      {text}
    </pre>
  );
}
