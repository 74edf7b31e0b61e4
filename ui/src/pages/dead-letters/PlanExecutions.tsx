import { Id } from '../../components/Id';
import { paths } from '../../routing/paths';
import type { RetryPlan } from './retryPlans';
import { counted } from './selection';

const FEW_EXECUTIONS = 100;

export function PlanExecutions({ plan }: { plan: RetryPlan }) {
  const { executions, workflow, letters } = plan;
  const [first] = executions;
  const links = executions.slice(0, FEW_EXECUTIONS).map((id) => <ExecutionLinkInNewTab key={id} id={id} />);
  if (executions.length === 1 && first) {
    return (
      <p className="letters-plan-head">
        <strong>{workflow}</strong>
        <ExecutionLinkInNewTab id={first} />
        {letters > 1 && <span className="faint">{counted(letters, 'letter')}</span>}
      </p>
    );
  }
  return (
    <details className="letters-plan-executions">
      <summary>
        <strong>{workflow}</strong> {counted(executions.length, 'execution')}
      </summary>
      <div className="letters-plan-links">
        {links}
        {executions.length > FEW_EXECUTIONS && (
          <span className="faint">and {(executions.length - FEW_EXECUTIONS).toLocaleString()} more</span>
        )}
      </div>
    </details>
  );
}

/** In a tab of its own: the preview stays. */
function ExecutionLinkInNewTab({ id }: { id: string }) {
  return (
    <a href={`/ui${paths.execution(id)}`} target="_blank" rel="noreferrer">
      <Id>{id}</Id>
    </a>
  );
}
