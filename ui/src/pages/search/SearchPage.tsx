import { Card } from '../../components/Card';
import { DebouncedInput } from '../../components/DebouncedInput';
import { Empty } from '../../components/Empty';
import { Page } from '../../components/Page';
import { useTitle } from '../../components/useTitle';
import { useQueryString } from '../../routing/useQueryString';
import { fromLocalField, toLocalField } from '../executions/filters';
import { ErrorMatches } from './ErrorMatches';
import { ValueMatches } from './ValueMatches';
import './search.css';

const PLACES = [
  { id: 'errors', label: 'Errors' },
  { id: 'input', label: 'Input' },
  { id: 'output', label: 'Output' },
] as const;

/** Searches a text in the errors of nodes, in inputs or in outputs. */
export default function SearchPage() {
  useTitle('Search');
  const [query, change] = useQueryString();
  const text = query.get('text') ?? '';
  const place = PLACES.find(({ id }) => id === query.get('in'))?.id ?? 'errors';
  const since = query.get('since');
  const workflow = query.get('workflow') ?? '';
  const filters = { ...(workflow && { workflow }), ...(since && { since }) };
  const key = JSON.stringify([text, place, filters]);
  return (
    <Page title="Search">
      <search className="card sr-form">
        <fieldset className="switch">
          <legend className="visually-hidden">Search in</legend>
          {PLACES.map(({ id, label }) => (
            <button
              key={id}
              type="button"
              aria-pressed={place === id}
              onClick={() => change({ in: id === 'errors' ? null : id })}
            >
              {label}
            </button>
          ))}
        </fieldset>
        <DebouncedInput
          type="search"
          className="sr-text"
          aria-label="Text to search for"
          placeholder="Text to search for"
          value={text}
          onValue={(next) => change({ text: next }, { replace: true })}
        />
        <DebouncedInput
          aria-label="Workflow"
          placeholder="any workflow"
          value={workflow}
          onValue={(next) => change({ workflow: next }, { replace: true })}
        />
        <label className="check">
          Since
          <input
            type="datetime-local"
            value={toLocalField(since)}
            onChange={(event) =>
              change({ since: fromLocalField(event.target.value) }, { replace: true })
            }
          />
        </label>
      </search>
      <Card>
        {text === '' && (
          <Empty title="Type a part of what you look for">
            Upper and lower case are the same. Inputs and outputs are searched as JSON.
          </Empty>
        )}
        {text !== '' && place === 'errors' && (
          <ErrorMatches key={key} text={text} filters={filters} />
        )}
        {text !== '' && place !== 'errors' && (
          <ValueMatches key={key} place={place} text={text} filters={filters} />
        )}
      </Card>
    </Page>
  );
}
