import { TriangleAlert } from 'lucide-react';
import { Id } from '../../components/basics';
import { paths } from '../../routing';
import type { Plan } from './plans';
import { counted } from './selection';

const FEW_NODES = 12;
const FEW_EXECUTIONS = 100;

export function PlanRow({ plan }: { plan: Plan }) {
  const { runs, keeps, refusal } = plan;
  return (
    <li className={refusal === null ? 'letters-plan' : 'letters-plan refused-plan'}>
      <Executions plan={plan} />
      {refusal === null ? (
        <>
          <Nodes title={`Runs ${runs.length}`} nodes={runs.map((run) => ({ id: run.node_id, why: run.reason }))} />
          {keeps.length > 0 && (
            <Nodes title={`Keeps ${keeps.length}`} nodes={keeps.map((id) => ({ id, why: '' }))} quiet />
          )}
        </>
      ) : (
        <p className="refused letters-refused">
          <TriangleAlert size={15} aria-hidden="true" /> {refusal}
        </p>
      )}
    </li>
  );
}

function Executions({ plan }: { plan: Plan }) {
  const { executions, workflow, letters } = plan;
  const [first] = executions;
  const links = executions.slice(0, FEW_EXECUTIONS).map((id) => <ExecutionLink key={id} id={id} />);
  if (executions.length === 1 && first) {
    return (
      <p className="letters-plan-head">
        <strong>{workflow}</strong>
        <ExecutionLink id={first} />
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
function ExecutionLink({ id }: { id: string }) {
  return (
    <a href={`/ui${paths.execution(id)}`} target="_blank" rel="noreferrer">
      <Id>{id}</Id>
    </a>
  );
}

function Nodes({
  title,
  nodes,
  quiet = false,
}: {
  title: string;
  nodes: { id: string; why: string }[];
  quiet?: boolean;
}) {
  return (
    <div className={quiet ? 'letters-nodes quiet' : 'letters-nodes'}>
      <span className="letters-nodes-title number">{title}</span>
      <span className="letters-nodes-list">
        {nodes.slice(0, FEW_NODES).map((each) => (
          <span key={each.id} className="tag">
            <code>{each.id}</code> {each.why && <span className="faint">{each.why}</span>}
          </span>
        ))}
        {nodes.length > FEW_NODES && (
          <span className="faint">and {(nodes.length - FEW_NODES).toLocaleString()} more</span>
        )}
      </span>
    </div>
  );
}
