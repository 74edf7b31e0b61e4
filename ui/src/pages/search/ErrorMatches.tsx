import { useInfiniteQuery } from '@tanstack/react-query';
import { type SearchFilters, searchErrors } from '../../api/calls';
import { Button } from '../../components/Button';
import { Loaded } from '../../components/Loaded';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { Marked } from './Marked';

/** Nodes that failed for good, with the text in their error. */
export function ErrorMatches({ text, filters }: { text: string; filters: SearchFilters }) {
  const matches = useInfiniteQuery({
    queryKey: ['search', 'errors', text, filters],
    queryFn: ({ pageParam }) => searchErrors(text, filters, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });
  return (
    <Loaded query={matches} what="Searching">
      {({ pages }) => {
        const items = pages.flatMap((page) => page.items);
        return (
          <>
            <ul className="sr-list" aria-label="Matches">
              {items.map((item) => (
                <li key={item.dead_letter_id}>
                  <p className="sr-head">
                    <Link to={paths.execution(item.execution_id, { node: item.node_id })}>
                      {item.workflow}@{item.version}, {item.node_id}
                    </Link>
                    <Time at={item.at} />
                    {item.category && <span className="tag">{item.category}</span>}
                    {item.retried_as && (
                      <Link to={paths.execution(item.retried_as)}>retried since</Link>
                    )}
                  </p>
                  <p className="sr-excerpt">
                    <Marked text={item.message ?? ''} part={text} />
                  </p>
                </li>
              ))}
            </ul>
            <p className="sr-foot" role="status">
              {items.length === 0 && `No error has “${text}” in its message. `}
              {items.length > 0 && `${items.length} ${items.length === 1 ? 'error' : 'errors'}. `}
              {matches.hasNextPage && (
                <Button
                  busy={matches.isFetchingNextPage}
                  onClick={() => void matches.fetchNextPage()}
                >
                  Search further
                </Button>
              )}
            </p>
          </>
        );
      }}
    </Loaded>
  );
}
