import { Radio } from 'lucide-react';
import { CopyButton } from '../../components/CopyButton';
import { Elapsed } from '../../components/Elapsed';
import { StateBadge } from '../../components/StateBadge';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { hasEnded } from '../../states';
import type { Run } from './useRun';
import { useTokens } from './useTokens';

export function ExecutionHeading({ run }: { run: Run }) {
  const { execution, state, live } = run;
  const tokens = useTokens(run);
  const { execution_id: executionId, workflow, version, labels } = execution;
  return (
    <span className="run-heading">
      <span className="run-title">
        <Link to={paths.workflow(workflow, { version: String(version) })}>{workflow}</Link>
        <span className="faint">@{version}</span>
        <StateBadge state={state} />
        {!hasEnded(state) && live && (
          <span className="run-live" title="Changes appear as they happen">
            <Radio size={14} aria-hidden="true" /> live
          </span>
        )}
      </span>
      <span className="run-facts">
        <code className="id">{executionId}</code>
        <CopyButton text={executionId} label="Copy the id" />
        <span>
          created <Time at={execution.created_at} />
        </span>
        <span>
          took <Elapsed from={execution.started_at} to={execution.finished_at} />
        </span>
        {tokens && (
          <span title={`${tokens.prompt} in prompts, ${tokens.completion} in answers`}>
            {tokens.total.toLocaleString()} tokens
          </span>
        )}
        {execution.retry_of && (
          <Link to={paths.execution(execution.retry_of)} title={execution.retry_of}>
            retry of an earlier execution
          </Link>
        )}
        {execution.retried_as && (
          <Link to={paths.execution(execution.retried_as)} title={execution.retried_as}>
            retried as a later execution
          </Link>
        )}
        {Object.entries(labels).map(([key, value]) => (
          <Link
            key={key}
            className="tag"
            to={paths.executions({ label: `${key}:${textOf(value)}` })}
          >
            {key}: {textOf(value)}
          </Link>
        ))}
      </span>
    </span>
  );
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
