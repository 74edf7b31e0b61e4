import { ArrowLeftRight } from 'lucide-react';
import type { Version, Workflow } from '../../../api/calls';
import { Button } from '../../../components/Button';
import { Card } from '../../../components/Card';
import { Empty } from '../../../components/Empty';
import { useQueryString } from '../../../routing/useQueryString';
import { VersionChoice } from './VersionChoice';
import { VersionComparison } from './VersionComparison';
import './diff.css';

type TabProps = { workflow: Workflow; versions: Version[] };

export function DiffTab({ workflow, versions }: TabProps) {
  const [query, change] = useQueryString();
  const numbers = versions.map((version) => version.version);
  if (numbers.length < 2) {
    return (
      <Card>
        <Empty title="There is only one version">
          Store a changed version of the workflow to compare the two here.
        </Empty>
      </Card>
    );
  }
  const chosen = (name: string) => numbers.find((number) => String(number) === query.get(name));
  const to =
    chosen('to') ?? (workflow.version === numbers.at(-1) ? numbers[0] : workflow.version) ?? 0;
  const from =
    chosen('from') ??
    numbers.find((number) => number < to) ??
    numbers.find((number) => number !== to) ??
    0;
  const choose = (name: 'from' | 'to', version: string) =>
    change({ [name]: version }, { replace: true });
  return (
    <Card>
      <div className="df-head">
        <VersionChoice
          label="From"
          chosen={from}
          numbers={numbers}
          onChoose={(version) => choose('from', version)}
        />
        <Button
          kind="quiet"
          icon={ArrowLeftRight}
          aria-label="Swap the versions"
          title="Swap the versions"
          onClick={() => change({ from: String(to), to: String(from) }, { replace: true })}
        />
        <VersionChoice
          label="To"
          chosen={to}
          numbers={numbers}
          onChoose={(version) => choose('to', version)}
        />
      </div>
      <VersionComparison name={workflow.name} from={from} to={to} />
    </Card>
  );
}
