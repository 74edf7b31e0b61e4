import { Id } from '../../components/Id';
import { BASE } from '../../routing/navigation';
import { paths } from '../../routing/paths';
import type { RetryPlan } from './retryPlans';
import { counted } from './selection';

const EXECUTIONS_SHOWN_MAX = 100;

export function PlanExecutions({ plan }: { plan: RetryPlan }) {
  const { executions, workflow, letters } = plan;
  const [first] = executions;
  const links = executions
    .slice(0, EXECUTIONS_SHOWN_MAX)
    .map((executionId) => <ExecutionLinkInNewTab key={executionId} executionId={executionId} />);
  if (executions.length === 1 && first) {
    return (
      <p className="dead-letters-plan-head">
        <strong>{workflow}</strong>
        <ExecutionLinkInNewTab executionId={first} />
        {letters > 1 && <span className="faint">{counted(letters, 'dead letter')}</span>}
      </p>
    );
  }
  return (
    <details className="dead-letters-plan-executions">
      <summary>
        <strong>{workflow}</strong> {counted(executions.length, 'execution')}
      </summary>
      <div className="dead-letters-plan-links">
        {links}
        {executions.length > EXECUTIONS_SHOWN_MAX && (
          <span className="faint">
            and {(executions.length - EXECUTIONS_SHOWN_MAX).toLocaleString()} more
          </span>
        )}
      </div>
    </details>
  );
}

/** Opens in a new tab, so that the preview stays. */
function ExecutionLinkInNewTab({ executionId }: { executionId: string }) {
  return (
    <a href={BASE + paths.execution(executionId)} target="_blank" rel="noreferrer">
      <Id>{executionId}</Id>
    </a>
  );
}
