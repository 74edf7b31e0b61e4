import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Ban, CirclePause, CirclePlay, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { type ControlRequest, requestControl } from '../../api/calls';
import { useMay } from '../../api/useMay';
import { Button } from '../../components/Button';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { toast, toastError } from '../../components/toast';
import { useQueryString } from '../../routing/useQueryString';
import { hasEnded } from '../../states';
import type { Run } from './useRun';

const DONE: Record<ControlRequest, string> = {
  cancel: 'Cancelled. Tasks that run are told to stop.',
  pause: 'Paused: what runs is recorded, nothing new starts.',
  resume: 'Goes on.',
};

/** What may be done to it now, by its state and the key's scope. */
export function ExecutionActions({ run, retrying }: { run: Run; retrying: boolean }) {
  const [query, change] = useQueryString();
  const [asking, setAsking] = useState(false);
  const may = useMay('operate');
  const queries = useQueryClient();
  const id = run.execution.execution_id;
  const controlling = useMutation({
    mutationFn: (request: ControlRequest) => requestControl(id, request),
    onSuccess: (_, request) => toast(DONE[request]),
    onError: toastError,
    onSettled: () => {
      setAsking(false);
      void queries.invalidateQueries({ queryKey: ['execution', id], exact: true });
    },
  });
  if (!may) return null;
  if (hasEnded(run.state)) {
    if (retrying) return null;
    return (
      <Button
        icon={RotateCcw}
        kind="primary"
        onClick={() => change({ retry: 'yes', tab: null, from: query.get('node') })}
      >
        Retry
      </Button>
    );
  }
  return (
    <>
      {run.state === 'PAUSED' ? (
        <Button icon={CirclePlay} busy={controlling.isPending} onClick={() => controlling.mutate('resume')}>
          Resume
        </Button>
      ) : (
        <Button icon={CirclePause} busy={controlling.isPending} onClick={() => controlling.mutate('pause')}>
          Pause
        </Button>
      )}
      <Button icon={Ban} kind="danger" onClick={() => setAsking(true)}>
        Cancel
      </Button>
      {asking && (
        <ConfirmDialog
          title="Cancel this execution?"
          action="Cancel the execution"
          danger
          busy={controlling.isPending}
          onConfirm={() => controlling.mutate('cancel')}
          onClose={() => setAsking(false)}
        >
          <p>It ends at once. Tasks that run are told to stop; what has completed is kept for a retry.</p>
        </ConfirmDialog>
      )}
    </>
  );
}
