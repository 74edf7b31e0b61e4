import { useQuery } from '@tanstack/react-query';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { Loaded } from '../../components/Loaded';
import { BulkRefusals } from './BulkRefusals';
import { BulkRetryPreview } from './BulkRetryPreview';
import { executionsText, summaryOf } from './bulkOutcomes';
import { type BulkProps, sendBulkRequests, useBulkRequest } from './useBulkRequest';

export function BulkRetryDialog(props: BulkProps) {
  const ids = props.rows.map((row) => row.execution_id);
  const preview = useQuery({
    queryKey: ['retry-preview', ids],
    queryFn: async () => summaryOf(await sendBulkRequests('retry', ids, true)),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const request = useBulkRequest('retry', 'retried', props);
  const retryable = preview.data?.done ?? [];
  return (
    <ConfirmDialog
      title={preview.data ? `Retry ${executionsText(retryable.length)}?` : 'Retry'}
      action={preview.data ? `Retry ${executionsText(retryable.length)}` : 'Retry'}
      busy={request.isPending || retryable.length === 0}
      onConfirm={() => request.mutate(retryable.map((outcome) => outcome.execution_id))}
      onClose={props.onClose}
    >
      <p>
        A new execution runs the nodes that didn't complete, and reuses the outputs of those that
        did.
      </p>
      <Loaded query={preview} what="Checking what would run">
        {({ done, refused }) => (
          <>
            {done.length > 0 && <BulkRetryPreview outcomes={done} rows={props.rows} />}
            <BulkRefusals title="Can't be retried" refused={refused} />
          </>
        )}
      </Loaded>
    </ConfirmDialog>
  );
}
