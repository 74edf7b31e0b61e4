import { useInfiniteQuery } from '@tanstack/react-query';
import { ScrollText } from 'lucide-react';
import { listAudit } from '../../api/calls';
import { Button } from '../../components/Button';
import { Card } from '../../components/Card';
import { DebouncedInput } from '../../components/DebouncedInput';
import { Empty } from '../../components/Empty';
import { Loaded } from '../../components/Loaded';
import { Page } from '../../components/Page';
import { useTitle } from '../../components/useTitle';
import { useQueryString } from '../../routing/useQueryString';
import { AuditRow } from './AuditRow';

const PAGE = 100;
const FILTERS = [
  { id: 'key', label: 'Id of a key' },
  { id: 'action', label: 'Action, such as put_workflow' },
  { id: 'object', label: 'Object, such as workflows/order' },
] as const;

/** Who changed what, when and from where. */
export default function AuditLog() {
  useTitle('Audit log');
  const [query, change] = useQueryString();
  const filters = Object.fromEntries(
    FILTERS.flatMap(({ id }) => {
      const value = query.get(id);
      return value ? [[id, value]] : [];
    }),
  );
  const lines = useInfiniteQuery({
    queryKey: ['audit', filters],
    queryFn: ({ pageParam }) => listAudit(filters, pageParam, PAGE),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });
  return (
    <Page title="Audit log">
      <search className="card admin-filters">
        {FILTERS.map(({ id, label }) => (
          <DebouncedInput
            key={id}
            type="search"
            aria-label={label}
            placeholder={label}
            value={query.get(id) ?? ''}
            onValue={(value) => change({ [id]: value }, { replace: true })}
          />
        ))}
      </search>
      <Card>
        <Loaded query={lines}>
          {({ pages }) => {
            const items = pages.flatMap((page) => page.items);
            if (items.length === 0) {
              return (
                <Empty title="Nothing was changed, as far as these filters go" icon={ScrollText} />
              );
            }
            return (
              <>
                <div className="table-wrap">
                  <table>
                    <thead>
                      <tr>
                        <th scope="col">Time</th>
                        <th scope="col">Key</th>
                        <th scope="col">Action</th>
                        <th scope="col">Object</th>
                        <th scope="col">Answer</th>
                        <th scope="col">Address</th>
                        <th scope="col">Detail</th>
                      </tr>
                    </thead>
                    <tbody>
                      {items.map((item) => (
                        <AuditRow key={item.id} item={item} />
                      ))}
                    </tbody>
                  </table>
                </div>
                {lines.hasNextPage && (
                  <p className="admin-more">
                    <Button
                      busy={lines.isFetchingNextPage}
                      onClick={() => void lines.fetchNextPage()}
                    >
                      Load more
                    </Button>
                  </p>
                )}
              </>
            );
          }}
        </Loaded>
      </Card>
    </Page>
  );
}
