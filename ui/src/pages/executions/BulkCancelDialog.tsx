import { ConfirmDialog } from '../../components/ConfirmDialog';
import { hasEnded } from '../../states';
import { executionsText } from './bulkOutcomes';
import { type BulkProps, useBulkRequest } from './useBulkRequest';

export function BulkCancelDialog(props: BulkProps) {
  const open = props.rows.filter((row) => !hasEnded(row.state)).map((row) => row.execution_id);
  const ended = props.rows.length - open.length;
  const steering = useBulkRequest('cancel', 'cancelled', props);
  return (
    <ConfirmDialog
      title={`Cancel ${executionsText(open.length)}?`}
      action={`Cancel ${executionsText(open.length)}`}
      danger
      busy={steering.isPending || open.length === 0}
      onConfirm={() => steering.mutate(open)}
      onClose={props.onClose}
    >
      <p>They end now; tasks that run are told to stop. A cancelled execution can be retried.</p>
      {ended > 0 && (
        <p className="faint">
          {ended === 1
            ? '1 execution of your selection has already ended and stays as it is.'
            : `${ended} executions of your selection have already ended and stay as they are.`}
        </p>
      )}
    </ConfirmDialog>
  );
}
