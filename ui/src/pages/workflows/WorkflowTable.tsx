import { Play } from 'lucide-react';
import type { ListedWorkflow } from '../../api/calls';
import { useMay } from '../../api/useMay';
import { Button } from '../../components/Button';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { LATEST, meaning, names } from './aliases';

export function WorkflowTable({
  rows,
  onStart,
}: {
  rows: ListedWorkflow[];
  onStart: (name: string) => void;
}) {
  const maySubmit = useMay('submit');
  return (
    <div className="table-wrap">
      <table className="wf-table">
        <caption className="visually-hidden">Workflows by name</caption>
        <thead>
          <tr>
            <th>Name</th>
            <th className="right">Latest</th>
            <th className="right">Versions</th>
            <th>Aliases</th>
            <th>Updated</th>
            {maySubmit && (
              <th>
                <span className="visually-hidden">Start</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <td className="wf-name">
                <Link to={paths.workflow(row.name)}>{row.name}</Link>
              </td>
              <td className="right number wf-latest">
                <span className="wf-word">version </span>
                {row.latest_version}
              </td>
              <td className="right number wf-count">
                {row.versions}
                <span className="wf-word"> {row.versions === 1 ? 'version' : 'versions'}</span>
              </td>
              <td className="wf-tags">
                {names(row.aliases)
                  .filter((alias) => alias !== LATEST)
                  .map((alias) => (
                    <span key={alias} className="tag wf-alias">
                      {alias} <span className="faint">{meaning(row.aliases[alias] ?? {})}</span>
                    </span>
                  ))}
              </td>
              <td className="wf-updated">
                <Time at={row.updated_at} />
              </td>
              {maySubmit && (
                <td className="right wf-start">
                  <Button
                    icon={Play}
                    aria-label={`Start ${row.name}`}
                    onClick={() => onStart(row.name)}
                  >
                    Start
                  </Button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
