import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ListedExecution, requestBulk } from '../../api/calls';
import { toastError } from '../../components/toast';
import { inParts, type Outcome, summaryOf } from './bulkOutcomes';
import { toastOutcome } from './toastOutcome';

export type BulkProps = { rows: ListedExecution[]; onClose: () => void; onDone: () => void };

export async function sendBulkRequests(
  action: 'cancel' | 'retry',
  ids: string[],
  preview = false,
): Promise<Outcome[]> {
  return inParts(ids, async (part) => (await requestBulk(action, part, preview)).items);
}

export function useBulkRequest(
  action: 'cancel' | 'retry',
  participle: string,
  { onClose, onDone }: BulkProps,
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (ids: string[]) => sendBulkRequests(action, ids),
    onSuccess: (outcomes) => {
      toastOutcome(participle, summaryOf(outcomes));
      onDone();
      onClose();
    },
    onError: toastError,
    onSettled: () => {
      for (const noun of ['executions', 'execution']) {
        void queries.invalidateQueries({ queryKey: [noun] });
      }
    },
  });
}
