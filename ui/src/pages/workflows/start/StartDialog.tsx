import { useQuery } from '@tanstack/react-query';
import { getWorkflow } from '../../../api/calls';
import { Dialog } from '../../../components/Dialog';
import { Loaded } from '../../../components/Loaded';
import { StartForm } from './StartForm';
import './start.css';

type StartProps = { name: string; version?: number | undefined; onClose: () => void };

/** Starts a version of a workflow; the newest if none is named. */
export function StartDialog({ name, version, onClose }: StartProps) {
  const tag = version ? String(version) : undefined;
  const workflowQuery = useQuery({
    queryKey: ['workflows', 'one', name, tag],
    queryFn: () => getWorkflow(name, tag),
  });
  return (
    <Dialog
      title={`Start ${name}${workflowQuery.data ? `@${workflowQuery.data.version}` : ''}`}
      onClose={onClose}
    >
      <Loaded query={workflowQuery}>
        {(workflow) => <StartForm key={workflow.version} workflow={workflow} onClose={onClose} />}
      </Loaded>
    </Dialog>
  );
}
