import type { Approval, NodeDetail } from '../../../api/calls';
import { useMay } from '../../../api/useMay';
import { useOpenApprovals } from '../../../api/useOpenApprovals';
import { Loading } from '../../../components/Loading';
import { ApprovalForm } from '../../approvals/ApprovalForm';
import type { Run } from '../useRun';
import { approvalOf } from './approvalOf';

/** The form of an approval at its node. */
export function ApprovalWait({ run, detail }: { run: Run; detail: NodeDetail }) {
  const mayApprove = useMay('approve');
  const open = useOpenApprovals();
  if (open.isPending) return <Loading what="Loading the approval" />;
  const approval: Approval =
    open.data?.items.find(
      ({ execution_id, node_id }) =>
        execution_id === run.execution.execution_id && node_id === detail.node_id,
    ) ?? approvalOf(run.execution, detail, mayApprove);
  return (
    <>
      <h4>{approval.title}</h4>
      {!approval.may_decide && <p className="faint">Others decide this.</p>}
      <ApprovalForm approval={approval} />
    </>
  );
}
