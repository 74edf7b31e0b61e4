import { useQuery } from '@tanstack/react-query';
import { ArrowLeftRight } from 'lucide-react';
import { useMemo } from 'react';
import { getWorkflow, type Version, type Workflow } from '../../../api/calls';
import { Button, Card, Empty, Loaded } from '../../../components/basics';
import { useQueryString } from '../../../routing';
import { DiffRows } from './DiffRows';
import { countChanges, diffRows, sectionsOf } from './model';
import './diff.css';

type TabProps = { workflow: Workflow; versions: Version[] };

export function DiffTab({ workflow, versions }: TabProps) {
  const [query, change] = useQueryString();
  const numbers = versions.map((each) => each.version);
  if (numbers.length < 2) {
    return (
      <Card>
        <Empty title="There is one version only">Store the workflow again with a change, and compare them here.</Empty>
      </Card>
    );
  }
  const chosen = (name: string) => numbers.find((each) => String(each) === query.get(name));
  const to = chosen('to') ?? (workflow.version === numbers.at(-1) ? numbers[0] : workflow.version) ?? 0;
  const from = chosen('from') ?? numbers.find((each) => each < to) ?? numbers.find((each) => each !== to) ?? 0;
  const choose = (name: 'from' | 'to', version: string) => change({ [name]: version }, { replace: true });
  return (
    <Card>
      <div className="df-head">
        <VersionChoice label="From" chosen={from} numbers={numbers} onChoose={(version) => choose('from', version)} />
        <Button
          kind="quiet"
          icon={ArrowLeftRight}
          aria-label="Swap the versions"
          title="Swap the versions"
          onClick={() => change({ from: String(to), to: String(from) }, { replace: true })}
        />
        <VersionChoice label="To" chosen={to} numbers={numbers} onChoose={(version) => choose('to', version)} />
      </div>
      <Comparison name={workflow.name} from={from} to={to} />
    </Card>
  );
}

type ChoiceProps = { label: string; chosen: number; numbers: number[]; onChoose: (version: string) => void };

function VersionChoice({ label, chosen, numbers, onChoose }: ChoiceProps) {
  return (
    <label>
      {label}{' '}
      <select value={chosen} onChange={(event) => onChoose(event.target.value)}>
        {numbers.map((each) => (
          <option key={each} value={each}>
            version {each}
          </option>
        ))}
      </select>
    </label>
  );
}

function useDefinition(name: string, version: number) {
  return useQuery({
    queryKey: ['workflows', 'definition', name, version],
    queryFn: async () => JSON.stringify((await getWorkflow(name, String(version))).definition, null, 2),
    staleTime: Number.POSITIVE_INFINITY, // a version never changes
  });
}

function Comparison({ name, from, to }: { name: string; from: number; to: number }) {
  const left = useDefinition(name, from);
  const right = useDefinition(name, to);
  return (
    <Loaded query={left}>
      {(before) => (
        <Loaded query={right}>
          {(after) => <Compared key={`${from} ${to}`} before={before} after={after} from={from} to={to} />}
        </Loaded>
      )}
    </Loaded>
  );
}

type ComparedProps = { before: string; after: string; from: number; to: number };

function Compared({ before, after, from, to }: ComparedProps) {
  const rows = useMemo(() => diffRows(before, after), [before, after]);
  const sections = useMemo(() => sectionsOf(rows ?? []), [rows]);
  if (!rows) return <Empty title="These versions are too large and too different to compare here" />;
  const { added, removed } = countChanges(rows);
  if (!added && !removed) return <Empty title="These versions are the same" />;
  return (
    <>
      <p className="df-count" role="status">
        <span className="df-plus">+{added}</span> <span className="df-minus">−{removed}</span>{' '}
        <span className="faint">{added + removed === 1 ? 'line' : 'lines'}</span>
      </p>
      <DiffRows sections={sections} label={`Version ${from} and version ${to} side by side`} />
    </>
  );
}
