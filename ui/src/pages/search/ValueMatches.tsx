import { useInfiniteQuery } from '@tanstack/react-query';
import { type SearchFilters, searchValues } from '../../api/calls';
import { Button } from '../../components/Button';
import { Loaded } from '../../components/Loaded';
import { StateBadge } from '../../components/StateBadge';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { localText } from '../../time';
import { shortId } from '../executions/filters';
import { Marked } from './Marked';

type MatchesProps = { place: 'input' | 'output'; text: string; filters: SearchFilters };

/** Executions with the text in their input, or in the output of a node. */
export function ValueMatches({ place, text, filters }: MatchesProps) {
  const matches = useInfiniteQuery({
    queryKey: ['search', place, text, filters],
    queryFn: ({ pageParam }) => searchValues(place, text, filters, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });
  return (
    <Loaded query={matches} what="Searching">
      {({ pages }) => {
        const items = pages.flatMap((page) => page.items);
        const searched = pages.reduce((sum, page) => sum + page.searched, 0);
        const until = pages.at(-1)?.searched_until;
        return (
          <>
            <ul className="sr-list" aria-label="Matches">
              {items.map((item) => (
                <li key={item.execution_id}>
                  <p className="sr-head">
                    <StateBadge state={item.state} />
                    <Link
                      to={paths.execution(
                        item.execution_id,
                        item.node_id === null ? { tab: 'values' } : { node: item.node_id },
                      )}
                    >
                      {item.workflow}@{item.version}
                      {item.node_id !== null && `, ${item.node_id}`}
                    </Link>
                    <code title={item.execution_id}>{shortId(item.execution_id)}</code>
                    <Time at={item.created_at} />
                  </p>
                  <p className="sr-excerpt">
                    <code>
                      <Marked text={item.excerpt} part={text} />
                    </code>
                  </p>
                </li>
              ))}
            </ul>
            <p className="sr-foot" role="status">
              {items.length === 1 ? '1 match' : `${items.length} matches`} in {searched}{' '}
              {searched === 1 ? 'execution' : 'executions'}
              {until && `, back to ${localText(until)}`}.{' '}
              {matches.hasNextPage ? (
                <Button
                  busy={matches.isFetchingNextPage}
                  onClick={() => void matches.fetchNextPage()}
                >
                  Search further
                </Button>
              ) : (
                'There are no older ones.'
              )}
            </p>
          </>
        );
      }}
    </Loaded>
  );
}
