import { ConfirmDialog } from '../../components/ConfirmDialog';
import { hasEnded } from '../../states';
import { executionsText } from './bulkOutcomes';
import { type BulkProps, useBulkRequest } from './useBulkRequest';

export function BulkCancelDialog(props: BulkProps) {
  const openIds = props.rows.filter((row) => !hasEnded(row.state)).map((row) => row.execution_id);
  const endedCount = props.rows.length - openIds.length;
  const request = useBulkRequest('cancel', 'cancelled', props);
  return (
    <ConfirmDialog
      title={`Cancel ${executionsText(openIds.length)}?`}
      action={`Cancel ${executionsText(openIds.length)}`}
      danger
      busy={request.isPending || openIds.length === 0}
      onConfirm={() => request.mutate(openIds)}
      onClose={props.onClose}
    >
      <p>
        The executions end at once, and running tasks are asked to stop. You can retry a cancelled
        execution.
      </p>
      {endedCount > 0 && (
        <p className="faint">
          {endedCount === 1
            ? '1 execution of your selection has already ended and stays as it is.'
            : `${endedCount} executions of your selection have already ended and stay as they are.`}
        </p>
      )}
    </ConfirmDialog>
  );
}
