import { useInfiniteQuery } from '@tanstack/react-query';
import { type Approval, listApprovals } from '../../api/calls';
import { Button } from '../../components/Button';
import { Empty } from '../../components/Empty';
import { Loaded } from '../../components/Loaded';
import { Page } from '../../components/Page';
import { useTitle } from '../../components/useTitle';
import { useQueryString } from '../../routing/useQueryString';
import { ApprovalCard } from './ApprovalCard';
import './approvals.css';

const PAGE = 50;
const REFETCH_MS = 3000;

/** The inbox: what waits for a decision. */
export default function Approvals() {
  useTitle('Approvals');
  const [query, change] = useQueryString();
  const showAll = query.has('all');
  const approvals = useInfiniteQuery({
    queryKey: ['approvals', 'list'],
    queryFn: ({ pageParam }) => listApprovals(pageParam, PAGE),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: REFETCH_MS,
  });
  return (
    <Page
      title="Approvals"
      actions={
        <label className="check">
          <input
            type="checkbox"
            checked={showAll}
            onChange={(event) => change({ all: event.target.checked ? '1' : null })}
          />
          Include those that others decide
        </label>
      }
    >
      <Loaded query={approvals} what="Loading the approvals">
        {({ pages }) => {
          const open = pages.flatMap((page) => page.items);
          const shown = showAll ? open : open.filter((approval) => approval.may_decide);
          return shown.length === 0 ? (
            <NothingToDecide open={open} />
          ) : (
            <ul className="approvals">
              {shown.map((approval) => (
                <li key={`${approval.execution_id} ${approval.node_id}`}>
                  <ApprovalCard approval={approval} isOpen={shown.length === 1} />
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
      {approvals.hasNextPage && (
        <Button busy={approvals.isFetchingNextPage} onClick={() => void approvals.fetchNextPage()}>
          Load more
        </Button>
      )}
    </Page>
  );
}

function NothingToDecide({ open }: { open: readonly Approval[] }) {
  return (
    <Empty title="Nothing to decide">
      {open.length > 0
        ? `${open.length} open approvals are for others to decide.`
        : 'A node with the handler "approval" asks here for a decision.'}
    </Empty>
  );
}
