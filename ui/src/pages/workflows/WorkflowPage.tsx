import { useQuery } from '@tanstack/react-query';
import { Play, Tags } from 'lucide-react';
import { useState } from 'react';
import { getWorkflow, listVersions, type Version, type Workflow } from '../../api/calls';
import { Problem } from '../../api/problem';
import { useMay } from '../../api/session';
import { Button, Empty, Loaded, Page, Time, useTitle } from '../../components/basics';
import { Tabs } from '../../components/tabs';
import { Link, paths, useQueryString } from '../../routing';
import { AliasDialog } from './AliasDialog';
import { AliasTags } from './Aliases';
import { aliasesAt } from './aliases';
import { DiffTab } from './diff/DiffTab';
import { DefinitionTab, ExecutionsTab, GraphTab } from './SmallTabs';
import { StatsTab } from './StatsTab';
import { StartDialog } from './start/StartDialog';
import { VersionsTab } from './VersionsTab';
import './workflows.css';

const TABS = [
  { id: 'graph', label: 'Graph' },
  { id: 'versions', label: 'Versions' },
  { id: 'diff', label: 'Diff' },
  { id: 'statistics', label: 'Statistics' },
  { id: 'definition', label: 'Definition' },
  { id: 'executions', label: 'Executions' },
];

export default function WorkflowPage({ name }: { name: string }) {
  useTitle(name);
  const [query] = useQueryString();
  const tag = query.get('version') ?? undefined;
  const found = useQuery({
    queryKey: ['workflows', 'one', name, tag],
    queryFn: () => getWorkflow(name, tag),
    placeholderData: (before) => before, // another version takes the place of this one when it is there
  });
  const versions = useQuery({ queryKey: ['workflows', 'versions', name], queryFn: () => listVersions(name) });
  if (found.error instanceof Problem && found.error.status === 404 && !found.isPlaceholderData) {
    return (
      <Empty title={found.error.message}>
        {tag ? (
          <Link to={paths.workflow(name)}>Show the latest version of {name}</Link>
        ) : (
          <Link to={paths.workflows()}>Show all workflows</Link>
        )}
      </Empty>
    );
  }
  return (
    <Loaded query={found}>{(workflow) => <Shown workflow={workflow} versions={versions.data?.items ?? []} />}</Loaded>
  );
}

function Shown({ workflow, versions }: { workflow: Workflow; versions: Version[] }) {
  const { name, version, definition } = workflow;
  const [query, change] = useQueryString();
  const [asked, setAsked] = useState<'start' | 'aliases' | null>(null);
  const maySubmit = useMay('submit');
  const mayOperate = useMay('operate');
  const wanted = query.get('tab') ?? 'graph';
  const tab = TABS.some((each) => each.id === wanted) ? wanted : 'graph';
  const close = () => setAsked(null);
  return (
    <Page
      title={name}
      actions={
        <>
          {mayOperate && (
            <Button icon={Tags} onClick={() => setAsked('aliases')}>
              Aliases
            </Button>
          )}
          {maySubmit && (
            <Button kind="primary" icon={Play} onClick={() => setAsked('start')}>
              Start
            </Button>
          )}
        </>
      }
    >
      <div className="wf-about">
        <VersionSelect workflow={workflow} versions={versions} onChoose={(next) => change({ version: next })} />
        <AliasTags aliases={aliasesAt(workflow.aliases, version)} />
        <span className="faint">
          stored <Time at={workflow.created_at} />
        </span>
        {typeof definition.description === 'string' && <p className="wf-description">{definition.description}</p>}
      </div>
      <Tabs label={`Parts of ${name}`} tabs={TABS} chosen={tab} onChoose={(next) => change({ tab: next })}>
        {tab === 'graph' && <GraphTab workflow={workflow} />}
        {tab === 'versions' && <VersionsTab workflow={workflow} versions={versions} />}
        {tab === 'diff' && <DiffTab workflow={workflow} versions={versions} />}
        {tab === 'statistics' && <StatsTab name={name} version={version} />}
        {tab === 'definition' && <DefinitionTab workflow={workflow} />}
        {tab === 'executions' && <ExecutionsTab name={name} version={version} />}
      </Tabs>
      {asked === 'start' && <StartDialog name={name} version={version} onClose={close} />}
      {asked === 'aliases' && <AliasDialog name={name} version={version} aliases={workflow.aliases} onClose={close} />}
    </Page>
  );
}

type SelectProps = { workflow: Workflow; versions: Version[]; onChoose: (version: string | null) => void };

function VersionSelect({ workflow, versions, onChoose }: SelectProps) {
  const { version, latest_version, aliases } = workflow;
  const numbers = versions.length ? versions.map((each) => each.version) : [version];
  return (
    <label className="wf-version">
      Version{' '}
      <select
        value={version}
        onChange={(event) => onChoose(Number(event.target.value) === latest_version ? null : event.target.value)}
      >
        {numbers.map((number) => {
          const said = aliasesAt(aliases, number).map(({ alias }) => alias);
          return (
            <option key={number} value={number}>
              {said.length ? `${number} (${said.join(', ')})` : number}
            </option>
          );
        })}
      </select>
    </label>
  );
}
