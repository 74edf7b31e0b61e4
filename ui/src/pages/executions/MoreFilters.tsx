import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { type ExecutionFilters, listWorkflows } from '../../api/calls';
import { DebouncedInput } from '../../components/DebouncedInput';
import type { Changes } from '../../routing/queryString';
import { fromLocalField, toLocalField } from './filters';
import { LabelFilter } from './LabelFilter';

export type Change = (changes: Changes, how?: { replace?: boolean }) => void;

export function MoreFilters({ filters, change }: { filters: ExecutionFilters; change: Change }) {
  const names = useId();
  const workflows = useQuery({
    queryKey: ['workflows', 'names'],
    queryFn: () => listWorkflows(null, 200),
    staleTime: 60_000,
  });
  return (
    <>
      <div className="field">
        <label htmlFor={`${names}-workflow`}>Workflow</label>
        <DebouncedInput
          id={`${names}-workflow`}
          list={names}
          value={filters.workflow ?? ''}
          placeholder="any"
          onValue={(workflow) => change({ workflow }, { replace: true })}
        />
      </div>
      <datalist id={names}>
        {workflows.data?.items.map((item) => (
          <option key={item.name} value={item.name} />
        ))}
      </datalist>
      <div className="field xs-version">
        <label htmlFor={`${names}-version`}>Version</label>
        <DebouncedInput
          id={`${names}-version`}
          type="number"
          min="1"
          step="1"
          placeholder="any"
          value={filters.version ? String(filters.version) : ''}
          onValue={(version) => change({ version }, { replace: true })}
        />
      </div>
      <LabelFilter labels={filters.label ?? []} onChange={(label) => change({ label })} />
      {(['since', 'until'] as const).map((name) => (
        <label key={name} className="field">
          {name === 'since' ? 'Since' : 'Until'}
          <input
            type="datetime-local"
            value={toLocalField(filters[name])}
            onChange={(event) =>
              change({ [name]: fromLocalField(event.target.value) }, { replace: true })
            }
          />
        </label>
      ))}
    </>
  );
}
