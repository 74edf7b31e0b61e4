import { useQuery } from '@tanstack/react-query';
import { getWorkflow } from '../../../api/calls';
import { Dialog } from '../../../components/Dialog';
import { Loaded } from '../../../components/Loaded';
import { StartForm } from './StartForm';
import type { InitialValues, Startable } from './startable';
import './start.css';

type StartProps = {
  name: string;
  version?: number | undefined;
  /** A document that isn't stored; it is run as it is. */
  json?: string;
  initial?: InitialValues;
  title?: string;
  onClose: () => void;
};

/** Starts a version of a workflow; the newest if none is named. */
export function StartDialog({ name, version, json, initial, title, onClose }: StartProps) {
  const tag = version ? String(version) : undefined;
  const workflowQuery = useQuery({
    queryKey: ['workflows', 'one', name, tag, json],
    queryFn: async (): Promise<Startable> =>
      json === undefined
        ? await getWorkflow(name, tag)
        : { name, definition: JSON.parse(json), json },
  });
  const shownVersion = workflowQuery.data?.version;
  return (
    <Dialog title={title ?? titleOf(name, json !== undefined, shownVersion)} onClose={onClose}>
      <Loaded query={workflowQuery}>
        {(workflow) => (
          <StartForm
            key={workflow.version}
            workflow={workflow}
            initial={initial ?? {}}
            onClose={onClose}
          />
        )}
      </Loaded>
    </Dialog>
  );
}

function titleOf(name: string, isUnsaved: boolean, version: number | undefined): string {
  if (isUnsaved) return `Run ${name} without saving`;
  return `Start ${name}${version ? `@${version}` : ''}`;
}
