import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useSyncExternalStore } from 'react';
import { getHistory } from '../../api/calls';
import { Button } from '../../components/Button';
import { Loaded } from '../../components/Loaded';
import { StateBadge } from '../../components/StateBadge';
import { reasonText } from '../../reasonText';
import { hasEnded } from '../../states';
import { clockText, localText, utcText, zoneText } from '../../time';
import type { Run } from './useRun';

const PAGE = 200;

/** Every change of a state, in order. */
export default function ExecutionHistory({
  run,
  onSelect,
}: {
  run: Run;
  onSelect: (nodeId: string) => void;
}) {
  const executionId = run.execution.execution_id;
  const version = useSyncExternalStore(run.store.subscribe, () => run.store.version);
  const history = useInfiniteQuery({
    queryKey: ['execution', executionId, 'history'],
    queryFn: ({ pageParam }) => getHistory(executionId, pageParam, PAGE),
    initialPageParam: 0,
    getNextPageParam: (page) => (page.next_cursor ? page.items.at(-1)?.seq : undefined),
  });
  const { refetch, hasNextPage } = history;
  // new changes belong to the last page: it is fetched again, unless pages before it aren't loaded
  // yet
  useEffect(() => {
    if (version && !hasNextPage) void refetch();
  }, [version, hasNextPage, refetch]);
  return (
    <Loaded query={history} what="Loading the history">
      {({ pages }) => (
        <>
          <div className="table-wrap history">
            <table>
              <thead>
                <tr>
                  <th scope="col">#</th>
                  <th scope="col">Time ({zoneText(run.execution.created_at)})</th>
                  <th scope="col">Node</th>
                  <th scope="col">State</th>
                  <th scope="col">Attempt</th>
                  <th scope="col">Reason</th>
                </tr>
              </thead>
              <tbody>
                {pages
                  .flatMap((page) => page.items)
                  .map((item) => (
                    <tr key={item.seq}>
                      <td className="number faint">{item.seq}</td>
                      <td className="number">
                        <time
                          dateTime={item.at}
                          title={`${localText(item.at)}\n${utcText(item.at)}`}
                        >
                          {clockText(item.at, { milliseconds: true })}
                        </time>
                      </td>
                      <td>
                        {item.node_id === null ? (
                          <em className="faint">execution</em>
                        ) : (
                          <button
                            type="button"
                            className="as-link"
                            onClick={() => onSelect(item.node_id as string)}
                          >
                            {item.node_id}
                          </button>
                        )}
                      </td>
                      <td>
                        <StateBadge state={item.to} />
                      </td>
                      <td className="number">{item.attempt || ''}</td>
                      <td>{reasonText(item.reason)}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
          </div>
          {hasNextPage && (
            <Button busy={history.isFetchingNextPage} onClick={() => void history.fetchNextPage()}>
              Show more
            </Button>
          )}
          {!hasEnded(run.state) && !hasNextPage && (
            <p className="faint">New changes appear here as they happen.</p>
          )}
        </>
      )}
    </Loaded>
  );
}
