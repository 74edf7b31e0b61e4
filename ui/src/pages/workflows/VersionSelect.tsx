import type { Version, Workflow } from '../../api/calls';
import { aliasesAt } from './aliases';

type SelectProps = {
  workflow: Workflow;
  versions: Version[];
  onChoose: (version: string | null) => void;
};

export function VersionSelect({ workflow, versions, onChoose }: SelectProps) {
  const { version, latest_version, aliases } = workflow;
  const numbers = versions.length ? versions.map((stored) => stored.version) : [version];
  return (
    <label className="wf-version">
      Version{' '}
      <select
        value={version}
        onChange={(event) =>
          onChoose(Number(event.target.value) === latest_version ? null : event.target.value)
        }
      >
        {numbers.map((number) => {
          const aliasNames = aliasesAt(aliases, number).map(({ alias }) => alias);
          return (
            <option key={number} value={number}>
              {aliasNames.length ? `${number} (${aliasNames.join(', ')})` : number}
            </option>
          );
        })}
      </select>
    </label>
  );
}
