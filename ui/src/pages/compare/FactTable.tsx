import type { ReactNode } from 'react';
import type { Execution } from '../../api/calls';
import { StateBadge } from '../../components/StateBadge';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { durationText, secondsBetween } from '../../time';
import { Differs } from './Differs';
import { areTimesDifferent, isSame } from './nodePairs';

type Fact = { name: string; of: (execution: Execution) => ReactNode; isDifferent: boolean };

/** The facts of two executions in two columns. */
export function FactTable({ left, right }: { left: Execution; right: Execution }) {
  const took = ({ started_at: from, finished_at: to }: Execution) => secondsBetween(from, to);
  const facts: Fact[] = [
    {
      name: 'Workflow',
      of: ({ workflow, version }) => (
        <Link to={paths.workflow(workflow, { version: String(version) })}>
          {workflow}
          <span className="faint">@{version}</span>
        </Link>
      ),
      isDifferent: left.workflow !== right.workflow || left.version !== right.version,
    },
    {
      name: 'State',
      of: ({ state }) => <StateBadge state={state} />,
      isDifferent: left.state !== right.state,
    },
    {
      name: 'Created',
      of: (execution) => <Time at={execution.created_at} exact />,
      isDifferent: false,
    },
    {
      name: 'Took',
      of: (execution) => durationText(took(execution)),
      isDifferent: areTimesDifferent(took(left), took(right)),
    },
    {
      name: 'Error',
      of: ({ error }) =>
        error ? `${error.node_id ? `${error.node_id}: ` : ''}${error.message}` : '–',
      isDifferent:
        left.error?.message !== right.error?.message ||
        left.error?.node_id !== right.error?.node_id,
    },
    {
      name: 'Labels',
      of: ({ labels }) =>
        Object.entries(labels)
          .map(
            ([key, value]) =>
              `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
          )
          .join(', ') || '–',
      isDifferent: !isSame(left.labels, right.labels),
    },
  ];
  return (
    <div className="table-wrap">
      <table className="cmp-facts">
        <thead>
          <tr>
            <th scope="col">
              <span className="visually-hidden">Fact</span>
            </th>
            {[left, right].map(({ execution_id: id }, index) => (
              <th key={id} scope="col">
                {index === 0 ? 'Left: ' : 'Right: '}
                <Link to={paths.execution(id)}>
                  <code>{id}</code>
                </Link>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {facts.map(({ name, of, isDifferent }) => (
            <tr key={name} className={isDifferent ? 'differs' : ''}>
              <th scope="row">
                {name} {isDifferent && <Differs />}
              </th>
              <td>{of(left)}</td>
              <td>{of(right)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
