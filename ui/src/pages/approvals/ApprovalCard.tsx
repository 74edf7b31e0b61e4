import { ChevronDown, ChevronRight } from 'lucide-react';
import { useId, useState } from 'react';
import type { Approval } from '../../api/calls';
import { Time } from '../../components/Time';
import { TimeLeft } from '../../components/TimeLeft';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { ApprovalForm } from './ApprovalForm';

type CardProps = { approval: Approval; isOpen: boolean };

/** An approval in the inbox; it opens to be decided. */
export function ApprovalCard({ approval, isOpen: isOpenAtFirst }: CardProps) {
  const id = useId();
  const [isChosen, setChosen] = useState<boolean | null>(null);
  const isOpen = isChosen ?? isOpenAtFirst;
  const { execution_id: executionId, node_id: nodeId, workflow, version } = approval;
  const Icon = isOpen ? ChevronDown : ChevronRight;
  return (
    <section className="card approval" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>
        <button
          type="button"
          className="approval-toggle"
          aria-expanded={isOpen}
          aria-controls={`${id}-form`}
          onClick={() => setChosen(!isOpen)}
        >
          <Icon size={17} aria-hidden="true" />
          <span>{approval.title}</span>
        </button>
      </h2>
      <p className="approval-facts">
        <Link to={paths.execution(executionId, { node: nodeId })}>
          {workflow}@{version} · {nodeId}
        </Link>
        <span className="faint">
          asked <Time at={approval.since} />
        </span>
        <TimeLeft until={approval.expires_at} />
        {!approval.may_decide && <span className="tag">others decide</span>}
      </p>
      <div id={`${id}-form`}>{isOpen && <ApprovalForm approval={approval} />}</div>
    </section>
  );
}
