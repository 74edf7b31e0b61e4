import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type DeadLetter, retryDeadLetters } from '../../api/calls';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { Loaded } from '../../components/Loaded';
import { toastError } from '../../components/toast';
import { RetryPlanRow } from './RetryPlanRow';
import { retryPlans } from './retryPlans';
import { counted, DEAD_LETTER_IDS_MAX } from './selection';
import { toastStarted } from './toastStarted';

type Props = { letters: DeadLetter[]; onClose: () => void; onDone: () => void };

/** Shows what each retry would run and reuse, then retries the executions that can be retried. */
export function RetryDeadLettersDialog({ letters, onClose, onDone }: Props) {
  const queries = useQueryClient();
  // Dead letters of one execution are retried together, so all go in one request. The others need
  // another one.
  const ids = letters.slice(0, DEAD_LETTER_IDS_MAX).map((letter) => letter.id);
  const preview = useQuery({
    queryKey: ['dead-letters-retry', ids],
    queryFn: async () => (await retryDeadLetters(ids, true)).items,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const possible = preview.data?.filter((item) => !item.error) ?? [];
  const retrying = useMutation({
    mutationFn: async () => {
      const possibleIds = possible.flatMap((item) => item.letters);
      return (await retryDeadLetters(possibleIds, false)).items;
    },
    onError: toastError,
    onSuccess: (done) => {
      toastStarted(done);
      for (const noun of ['dead-letters', 'executions', 'execution', 'stats']) {
        void queries.invalidateQueries({ queryKey: [noun] });
      }
      onDone();
    },
  });
  return (
    <Dialog
      wide
      title={`Retry ${counted(ids.length, 'dead letter')}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button
            kind="primary"
            disabled={possible.length === 0 || retrying.isPending}
            onClick={() => retrying.mutate()}
          >
            {preview.data ? `Retry ${counted(possible.length, 'execution')}` : 'Retry'}
          </Button>
        </>
      }
    >
      {letters.length > ids.length && (
        <p className="faint">
          These are the first {DEAD_LETTER_IDS_MAX.toLocaleString()}; the others stay for another
          time.
        </p>
      )}
      <Loaded query={preview} what="Checking what would run">
        {(items) => (
          <>
            <p className="faint">
              Each execution is retried as a new execution. Nodes that failed run again, and so do
              the nodes that depend on them. The outputs of completed nodes are reused.
            </p>
            <ul className="dead-letters-plans">
              {retryPlans(items, letters).map((plan) => (
                <RetryPlanRow key={plan.key} plan={plan} />
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </Dialog>
  );
}
