import { useOpenApprovals } from '../api/useOpenApprovals';

/** How many approvals are the caller's to decide. */
export function ApprovalsBadge() {
  const { data } = useOpenApprovals();
  const count = data?.items.filter((approval) => approval.may_decide).length ?? 0;
  if (count === 0) return null;
  return (
    <b className="section-count" title={`${count} to decide`}>
      {count}
      {data?.next_cursor && '+'}
      <span className="visually-hidden"> to decide</span>
    </b>
  );
}
