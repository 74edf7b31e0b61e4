import { ListFilter, Search, X } from 'lucide-react';
import { type Ref, useId, useState } from 'react';
import type { ExecutionFilters } from '../../api/calls';
import { Button } from '../../components/Button';
import { DebouncedInput } from '../../components/DebouncedInput';
import { CLEARED, countHidden, hasFilters } from './filters';
import { type Change, MoreFilters } from './MoreFilters';
import { StateFilter } from './StateFilter';

type BarProps = { filters: ExecutionFilters; change: Change; search: Ref<HTMLInputElement> };

export function FilterBar({ filters, change, search }: BarProps) {
  const [open, setOpen] = useState(false);
  const hidden = countHidden(filters);
  const more = useId();
  return (
    <search className="card xs-filters" aria-label="Filters">
      <div className="xs-first">
        <span className="xs-search">
          <Search size={16} aria-hidden="true" />
          <DebouncedInput
            input={search}
            type="search"
            aria-label="Part of an id or of a workflow's name"
            placeholder="Id or workflow  ( / )"
            value={filters.text ?? ''}
            onValue={(text) => change({ text }, { replace: true })}
          />
        </span>
        <StateFilter chosen={filters.state ?? []} onChange={(state) => change({ state })} />
        <Button
          className="xs-more-button"
          icon={ListFilter}
          aria-expanded={open}
          aria-controls={more}
          onClick={() => setOpen(!open)}
        >
          {hidden ? `Filters (${hidden})` : 'Filters'}
        </Button>
        {hasFilters(filters) && (
          <Button kind="quiet" icon={X} onClick={() => change(CLEARED)}>
            Clear filters
          </Button>
        )}
      </div>
      <div id={more} className={open ? 'xs-more open' : 'xs-more'}>
        <MoreFilters filters={filters} change={change} />
      </div>
    </search>
  );
}
