import { useQuery } from '@tanstack/react-query';
import { ListFilter, Search, X } from 'lucide-react';
import { type FormEvent, type Ref, useId, useState } from 'react';
import { type Filters, listWorkflows } from '../../api/calls';
import { Button, StateIcon } from '../../components/basics';
import type { Changes } from '../../routing';
import { EXECUTION_STATES, stateClass } from '../../states';
import { CLEARED, countHidden, fromLocalField, hasFilters, isLabel, toLocalField } from './filters';
import { TypedInput } from './TypedInput';

type Change = (changes: Changes, how?: { replace?: boolean }) => void;
type BarProps = { filters: Filters; change: Change; search: Ref<HTMLInputElement> };

export function FilterBar({ filters, change, search }: BarProps) {
  const [open, setOpen] = useState(false);
  const hidden = countHidden(filters);
  const more = useId();
  return (
    <search className="card xs-filters" aria-label="Filters">
      <div className="xs-first">
        <span className="xs-search">
          <Search size={16} aria-hidden="true" />
          <TypedInput
            input={search}
            type="search"
            aria-label="Part of an id or of a workflow's name"
            placeholder="Id or workflow  ( / )"
            value={filters.text ?? ''}
            onSettle={(text) => change({ text }, { replace: true })}
          />
        </span>
        <States chosen={filters.state ?? []} onChange={(state) => change({ state })} />
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

function States({ chosen, onChange }: { chosen: string[]; onChange: (states: string[]) => void }) {
  return (
    <fieldset className="xs-states">
      <legend className="visually-hidden">States</legend>
      {EXECUTION_STATES.map((state) => {
        const isOn = chosen.includes(state);
        return (
          <button
            key={state}
            type="button"
            className={`xs-chip ${stateClass(state)}`}
            aria-pressed={isOn}
            onClick={() => onChange(isOn ? chosen.filter((each) => each !== state) : [...chosen, state])}
          >
            <StateIcon state={state} size={13} />
            {state}
          </button>
        );
      })}
    </fieldset>
  );
}

function MoreFilters({ filters, change }: { filters: Filters; change: Change }) {
  const names = useId();
  const known = useQuery({
    queryKey: ['workflows', 'names'],
    queryFn: () => listWorkflows(null, 200),
    staleTime: 60_000,
  });
  return (
    <>
      <div className="field">
        <label htmlFor={`${names}-workflow`}>Workflow</label>
        <TypedInput
          id={`${names}-workflow`}
          list={names}
          value={filters.workflow ?? ''}
          placeholder="any"
          onSettle={(workflow) => change({ workflow }, { replace: true })}
        />
      </div>
      <datalist id={names}>
        {known.data?.items.map((each) => (
          <option key={each.name} value={each.name} />
        ))}
      </datalist>
      <div className="field xs-version">
        <label htmlFor={`${names}-version`}>Version</label>
        <TypedInput
          id={`${names}-version`}
          type="number"
          min="1"
          step="1"
          placeholder="any"
          value={filters.version ? String(filters.version) : ''}
          onSettle={(version) => change({ version }, { replace: true })}
        />
      </div>
      <LabelFilter labels={filters.label ?? []} onChange={(label) => change({ label })} />
      {(['since', 'until'] as const).map((name) => (
        <label key={name} className="field">
          {name === 'since' ? 'Since' : 'Until'}
          <input
            type="datetime-local"
            value={toLocalField(filters[name])}
            onChange={(event) => change({ [name]: fromLocalField(event.target.value) }, { replace: true })}
          />
        </label>
      ))}
    </>
  );
}

function LabelFilter({ labels, onChange }: { labels: string[]; onChange: (labels: string[]) => void }) {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState(false);
  const field = useId();
  const add = (event: FormEvent) => {
    event.preventDefault();
    const label = text.trim();
    setWrong(label !== '' && !isLabel(label));
    if (!isLabel(label)) return;
    onChange([...new Set([...labels, label])]);
    setText('');
  };
  return (
    <form className="field xs-label" onSubmit={add}>
      <label htmlFor={field}>Labels</label>
      <span className="xs-label-row">
        {labels.map((label) => (
          <button
            key={label}
            type="button"
            className="tag"
            aria-label={`Remove the filter ${label}`}
            onClick={() => onChange(labels.filter((each) => each !== label))}
          >
            {label} <X size={12} aria-hidden="true" />
          </button>
        ))}
        <input
          id={field}
          value={text}
          placeholder="key:value, Enter"
          aria-invalid={wrong}
          aria-describedby={wrong ? `${field}-wrong` : undefined}
          onChange={(event) => setText(event.target.value)}
        />
      </span>
      {wrong && (
        <span id={`${field}-wrong`} className="field-error" role="alert">
          Write key:value, such as team:billing
        </span>
      )}
    </form>
  );
}
