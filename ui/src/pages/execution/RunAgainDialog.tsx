import { useQuery } from '@tanstack/react-query';
import { getExecutionDefinition } from '../../api/calls';
import { Dialog } from '../../components/Dialog';
import { Loaded } from '../../components/Loaded';
import { StartForm } from '../workflows/start/StartForm';
import '../workflows/start/start.css';
import type { Run } from './useRun';

/** Starts the same version again; its input and labels are in the form, to be changed. */
export function RunAgainDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const { execution_id: executionId, workflow, version, input, labels } = run.execution;
  const definition = useQuery({
    queryKey: ['execution', executionId, 'definition'],
    queryFn: () => getExecutionDefinition(executionId),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Dialog title={`Run ${workflow}@${version} again`} onClose={onClose}>
      <Loaded query={definition}>
        {(startable) => (
          <StartForm workflow={startable} initial={{ input, labels }} onClose={onClose} />
        )}
      </Loaded>
    </Dialog>
  );
}
