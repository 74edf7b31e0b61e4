import { Pencil, Play, Tags } from 'lucide-react';
import { useState } from 'react';
import type { Version, Workflow } from '../../api/calls';
import { useMay } from '../../api/useMay';
import { Button } from '../../components/Button';
import { Page } from '../../components/Page';
import { Tabs } from '../../components/Tabs';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { useQueryString } from '../../routing/useQueryString';
import { AliasesDialog } from './AliasesDialog';
import { AliasTags } from './AliasTags';
import { aliasesAt } from './aliases';
import { DefinitionTab } from './DefinitionTab';
import { DiffTab } from './diff/DiffTab';
import { ExecutionsTab } from './ExecutionsTab';
import { GraphTab } from './GraphTab';
import { StatsTab } from './StatsTab';
import { StartDialog } from './start/StartDialog';
import { VersionSelect } from './VersionSelect';
import { VersionsTab } from './VersionsTab';

const TABS = [
  { id: 'graph', label: 'Graph' },
  { id: 'versions', label: 'Versions' },
  { id: 'diff', label: 'Diff' },
  { id: 'statistics', label: 'Statistics' },
  { id: 'definition', label: 'Definition' },
  { id: 'executions', label: 'Executions' },
];

export function WorkflowView({ workflow, versions }: { workflow: Workflow; versions: Version[] }) {
  const { name, version, definition } = workflow;
  const [query, change] = useQueryString();
  const [dialog, setDialog] = useState<'start' | 'aliases' | null>(null);
  const maySubmit = useMay('submit');
  const mayOperate = useMay('operate');
  const tabInAddress = query.get('tab') ?? 'graph';
  const tab = TABS.some(({ id }) => id === tabInAddress) ? tabInAddress : 'graph';
  const close = () => setDialog(null);
  return (
    <Page
      title={name}
      actions={
        <>
          <Link
            className="button"
            to={paths.editWorkflow(name, {
              version: version === workflow.latest_version ? null : String(version),
            })}
          >
            <Pencil size={16} aria-hidden="true" />
            <span>Edit</span>
          </Link>
          {mayOperate && (
            <Button icon={Tags} onClick={() => setDialog('aliases')}>
              Aliases
            </Button>
          )}
          {maySubmit && (
            <Button kind="primary" icon={Play} onClick={() => setDialog('start')}>
              Start
            </Button>
          )}
        </>
      }
    >
      <div className="wf-about">
        <VersionSelect
          workflow={workflow}
          versions={versions}
          onChoose={(next) => change({ version: next })}
        />
        <AliasTags aliases={aliasesAt(workflow.aliases, version)} />
        <span className="faint">
          stored <Time at={workflow.created_at} />
        </span>
        {typeof definition.description === 'string' && (
          <p className="wf-description">{definition.description}</p>
        )}
      </div>
      <Tabs
        label={`Parts of ${name}`}
        tabs={TABS}
        chosen={tab}
        onChoose={(next) => change({ tab: next })}
      >
        {tab === 'graph' && <GraphTab workflow={workflow} />}
        {tab === 'versions' && <VersionsTab workflow={workflow} versions={versions} />}
        {tab === 'diff' && <DiffTab workflow={workflow} versions={versions} />}
        {tab === 'statistics' && <StatsTab name={name} version={version} />}
        {tab === 'definition' && <DefinitionTab workflow={workflow} />}
        {tab === 'executions' && <ExecutionsTab name={name} version={version} />}
      </Tabs>
      {dialog === 'start' && <StartDialog name={name} version={version} onClose={close} />}
      {dialog === 'aliases' && (
        <AliasesDialog name={name} version={version} aliases={workflow.aliases} onClose={close} />
      )}
    </Page>
  );
}
