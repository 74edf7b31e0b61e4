import { GitCompareArrows } from 'lucide-react';
import { useState } from 'react';
import type { Version, Workflow } from '../../api/calls';
import { Button } from '../../components/Button';
import { Card } from '../../components/Card';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { useQueryString } from '../../routing/useQueryString';
import { AliasTags } from './AliasTags';
import { aliasesAt } from './aliases';

const HASH_SHOWN = 12;

export function VersionsTab({ workflow, versions }: { workflow: Workflow; versions: Version[] }) {
  const [, change] = useQueryString();
  const [chosen, setChosen] = useState<number[]>([]);
  const toggle = (version: number) =>
    setChosen((now) =>
      now.includes(version)
        ? now.filter((other) => other !== version)
        : [...now.slice(-1), version],
    );
  const compare = () => {
    const [from, to] = [...chosen].sort((a, b) => a - b);
    change({ tab: 'diff', from: String(from), to: String(to) });
  };
  return (
    <Card
      title={versions.length === 1 ? '1 version' : `${versions.length} versions`}
      actions={
        versions.length > 1 && (
          <>
            <span className="faint">{chosen.length < 2 ? 'Choose two to compare' : null}</span>
            <Button icon={GitCompareArrows} disabled={chosen.length !== 2} onClick={compare}>
              Compare
            </Button>
          </>
        )
      }
    >
      <div className="table-wrap">
        <table className="wf-versions">
          <caption className="visually-hidden">
            Versions of {workflow.name}, the newest first
          </caption>
          <thead>
            <tr>
              {versions.length > 1 && (
                <th>
                  <span className="visually-hidden">Compare</span>
                </th>
              )}
              <th>Version</th>
              <th>Stored</th>
              <th>Hash</th>
              <th>Aliases</th>
            </tr>
          </thead>
          <tbody>
            {versions.map((version) => (
              <tr
                key={version.version}
                aria-current={version.version === workflow.version ? 'true' : undefined}
              >
                {versions.length > 1 && (
                  <td className="wf-box">
                    <input
                      type="checkbox"
                      aria-label={`Compare version ${version.version}`}
                      checked={chosen.includes(version.version)}
                      onChange={() => toggle(version.version)}
                    />
                  </td>
                )}
                <td className="number">
                  <Link to={paths.workflow(workflow.name, { version: String(version.version) })}>
                    {version.version}
                  </Link>
                </td>
                <td>
                  <Time at={version.created_at} />
                </td>
                <td>
                  <code title={version.content_hash}>
                    {version.content_hash.slice(0, HASH_SHOWN)}
                  </code>
                </td>
                <td>
                  <span className="wf-tags">
                    <AliasTags aliases={aliasesAt(workflow.aliases, version.version)} />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
