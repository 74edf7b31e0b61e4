import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Ban, CirclePause, CirclePlay, Columns2, Play, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { type ControlRequest, requestControl } from '../../api/calls';
import { useMay } from '../../api/useMay';
import { Button } from '../../components/Button';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { toast, toastError } from '../../components/toast';
import { useQueryString } from '../../routing/useQueryString';
import { hasEnded } from '../../states';
import { CompareDialog } from './CompareDialog';
import { RunAgainDialog } from './RunAgainDialog';
import { useRetryable } from './useRetryable';
import type { Run } from './useRun';

const DONE_TEXTS: Record<ControlRequest, string> = {
  cancel: 'Cancelled. Running tasks are asked to stop.',
  pause: 'Paused. Running tasks finish; no new ones start.',
  resume: 'Resumed.',
};

/** The requests that the execution's state and the key's scope allow now. */
export function ExecutionActions({ run, retrying }: { run: Run; retrying: boolean }) {
  const [query, change] = useQueryString();
  const [isConfirming, setConfirming] = useState(false);
  const [dialog, setDialog] = useState<'run' | 'compare' | null>(null);
  const maySubmit = useMay('submit');
  const mayOperate = useMay('operate');
  const queries = useQueryClient();
  const executionId = run.execution.execution_id;
  const controlling = useMutation({
    mutationFn: (request: ControlRequest) => requestControl(executionId, request),
    onSuccess: (_, request) => toast(DONE_TEXTS[request]),
    onError: toastError,
    onSettled: () => {
      setConfirming(false);
      void queries.invalidateQueries({ queryKey: ['execution', executionId], exact: true });
    },
  });
  const isRetryable = useRetryable(run);
  const close = () => setDialog(null);
  if (hasEnded(run.state)) {
    if (retrying) return null;
    return (
      <>
        <Button icon={Columns2} onClick={() => setDialog('compare')}>
          Compare
        </Button>
        {maySubmit && (
          <Button icon={Play} onClick={() => setDialog('run')}>
            Run again
          </Button>
        )}
        {mayOperate && isRetryable && (
          <Button
            icon={RotateCcw}
            kind="primary"
            onClick={() => change({ retry: 'yes', tab: null, from: query.get('node') })}
          >
            Retry
          </Button>
        )}
        {dialog === 'run' && <RunAgainDialog run={run} onClose={close} />}
        {dialog === 'compare' && <CompareDialog run={run} onClose={close} />}
      </>
    );
  }
  if (!mayOperate) return null;
  return (
    <>
      {run.state === 'PAUSED' ? (
        <Button
          icon={CirclePlay}
          busy={controlling.isPending}
          onClick={() => controlling.mutate('resume')}
        >
          Resume
        </Button>
      ) : (
        <Button
          icon={CirclePause}
          busy={controlling.isPending}
          onClick={() => controlling.mutate('pause')}
        >
          Pause
        </Button>
      )}
      <Button icon={Ban} kind="danger" onClick={() => setConfirming(true)}>
        Cancel
      </Button>
      {isConfirming && (
        <ConfirmDialog
          title="Cancel this execution?"
          action="Cancel the execution"
          danger
          busy={controlling.isPending}
          onConfirm={() => controlling.mutate('cancel')}
          onClose={() => setConfirming(false)}
        >
          <p>
            The execution ends at once, and running tasks are asked to stop. A retry can reuse the
            outputs of completed nodes.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
