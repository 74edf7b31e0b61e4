import { useInfiniteQuery } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import { useState } from 'react';
import { getExecutionLogs, type LogItem } from '../../api/calls';
import { Button } from '../../components/Button';
import { downloadText } from '../../components/downloadText';
import { Empty } from '../../components/Empty';
import { Loaded } from '../../components/Loaded';
import { toastError } from '../../components/toast';
import { hasEnded } from '../../states';
import { LogText } from './LogText';
import { linesWith, logFile } from './logLines';
import type { Run } from './useRun';

const LOOK_MS = 2000;

/** The logs of all nodes and attempts, in the order in which they began. */
export default function ExecutionLogs({
  run,
  onSelect,
}: {
  run: Run;
  onSelect: (nodeId: string) => void;
}) {
  const executionId = run.execution.execution_id;
  const isRunning = !hasEnded(run.state);
  const [searchText, setSearchText] = useState('');
  const [isLoadingAll, setLoadingAll] = useState(false);
  const logs = useInfiniteQuery({
    queryKey: ['execution', executionId, 'logs', isRunning],
    queryFn: ({ pageParam }) => getExecutionLogs(executionId, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: isRunning ? LOOK_MS : false,
  });
  const download = async () => {
    setLoadingAll(true);
    try {
      const text = logFile(await allLogs(executionId));
      downloadText(text, `${executionId}.log`, 'text/plain');
    } catch (error) {
      toastError(error as Error);
    }
    setLoadingAll(false);
  };
  return (
    <Loaded query={logs} what="Loading the logs">
      {({ pages }) => {
        const items = pages.flatMap((page) => page.items);
        const shown = items.flatMap((item) => linesWith(item, searchText));
        if (items.length === 0) {
          return (
            <Empty title={isRunning ? 'Nothing logged yet' : 'Nothing was logged'}>
              Handlers log with <code>ctx.log.info(…)</code> or <code>logging</code>.
            </Empty>
          );
        }
        return (
          <div className="node-parts">
            <div className="actions">
              <input
                type="search"
                aria-label="Show only lines with this text"
                placeholder="Only lines with …"
                value={searchText}
                onChange={(event) => setSearchText(event.target.value)}
              />
              <span className="spacer" />
              <Button icon={Download} busy={isLoadingAll} onClick={() => void download()}>
                Download all logs
              </Button>
            </div>
            {shown.length === 0 && (
              <p className="faint">No line of the loaded logs has “{searchText}” in it.</p>
            )}
            {shown.map((item) => (
              <section key={`${item.node_id} ${item.attempt}`} className="run-log">
                <h3>
                  <button type="button" className="as-link" onClick={() => onSelect(item.node_id)}>
                    {item.node_id}
                  </button>{' '}
                  <span className="faint">
                    attempt {item.attempt}
                    {item.live && ', so far'}
                  </span>
                </h3>
                <LogText text={item.text} follows={item.live} />
              </section>
            ))}
            {logs.hasNextPage && (
              <Button busy={logs.isFetchingNextPage} onClick={() => void logs.fetchNextPage()}>
                Show more
              </Button>
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

async function allLogs(executionId: string): Promise<LogItem[]> {
  const items: LogItem[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof getExecutionLogs>> = await getExecutionLogs(
      executionId,
      cursor,
    );
    items.push(...page.items);
    cursor = page.next_cursor ?? null;
  } while (cursor);
  return items;
}
