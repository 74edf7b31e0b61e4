import type { Changes } from '../../routing/queryString';
import { NameFilter } from './NameFilter';

type FiltersProps = {
  query: URLSearchParams;
  change: (changes: Changes) => void;
  workflows: string[];
  handlers: string[];
};

export function DeadLetterFilters({ query, change, workflows, handlers }: FiltersProps) {
  return (
    <search className="dead-letters-filters">
      <NameFilter
        label="Workflow"
        value={query.get('workflow') ?? ''}
        suggestions={workflows}
        onChange={(workflow) => change({ workflow })}
      />
      <NameFilter
        label="Handler"
        value={query.get('handler') ?? ''}
        suggestions={handlers}
        onChange={(handler) => change({ handler })}
      />
      <label className="check">
        <input
          type="checkbox"
          checked={query.has('closed')}
          onChange={(event) => change({ closed: event.target.checked ? '1' : null })}
        />
        Include retried and dropped
      </label>
    </search>
  );
}
