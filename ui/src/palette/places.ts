// What the palette leads to.
import type { ListedExecution, ListedWorkflow } from '../api/calls';
import { paths } from '../routing/paths';

export type Place = { to: string; label: string; detail: string };

const PAGES: (Place & { scope?: string })[] = [
  { to: paths.overview(), label: 'Overview', detail: 'Page' },
  { to: paths.executions(), label: 'Executions', detail: 'Page' },
  { to: paths.executions({ state: 'FAILED' }), label: 'Failed executions', detail: 'Page' },
  { to: paths.executions({ state: 'RUNNING' }), label: 'Running executions', detail: 'Page' },
  { to: paths.workflows(), label: 'Workflows', detail: 'Page' },
  { to: paths.newWorkflow(), label: 'New workflow', detail: 'Editor' },
  { to: paths.deadLetters(), label: 'Dead letters', detail: 'Page' },
  { to: paths.approvals(), label: 'Approvals', detail: 'Page' },
  { to: paths.workers(), label: 'Workers and queues', detail: 'Page' },
  { to: paths.search(), label: 'Search in errors, input and output', detail: 'Page' },
  { to: paths.apiKeys(), label: 'API keys', detail: 'Page', scope: 'admin' },
  { to: paths.audit(), label: 'Audit log', detail: 'Page', scope: 'operate' },
];
const WORKFLOWS_MAX = 8;

export function placesFor(
  text: string,
  scopes: readonly string[],
  workflows: readonly ListedWorkflow[],
  executions: readonly ListedExecution[],
): Place[] {
  const wanted = text.trim().toLowerCase();
  const fits = (label: string) => label.toLowerCase().includes(wanted);
  const pages = PAGES.filter(
    ({ label, scope }) => fits(label) && (scope === undefined || scopes.includes(scope)),
  );
  const named = workflows.filter(({ name }) => fits(name)).slice(0, WORKFLOWS_MAX);
  const places = [
    ...named.map(({ name }) => ({ to: paths.workflow(name), label: name, detail: 'Workflow' })),
    ...executions.map((row) => ({
      to: paths.execution(row.execution_id),
      label: row.execution_id,
      detail: `${row.workflow}@${row.version}, ${row.state.toLowerCase()}`,
    })),
    ...named.slice(0, wanted ? 3 : 0).map(({ name }) => ({
      to: paths.editWorkflow(name),
      label: `Edit ${name}`,
      detail: 'Editor',
    })),
  ];
  const bare = pages.map(({ to, label, detail }) => ({ to, label, detail }));
  return wanted ? [...places, ...bare] : [...bare, ...places];
}
