import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type DeadLetter, retryDeadLetters } from '../../api/calls';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { Loaded } from '../../components/Loaded';
import { toastError } from '../../components/toast';
import { RetryPlanRow } from './RetryPlanRow';
import { retryPlans } from './retryPlans';
import { counted, MOST_IDS } from './selection';
import { toastStarted } from './toastStarted';

type Props = { letters: DeadLetter[]; onClose: () => void; onDone: () => void };

/** First what would run and what would be kept, by execution; then it is done for those where it can be. */
export function RetryDeadLettersDialog({ letters, onClose, onDone }: Props) {
  const queries = useQueryClient();
  // Letters of one execution are retried together, so all go in one call; the rest waits for the next.
  const ids = letters.slice(0, MOST_IDS).map((each) => each.id);
  const preview = useQuery({
    queryKey: ['letters-retry', ids],
    queryFn: async () => (await retryDeadLetters(ids, true)).items,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const possible = preview.data?.filter((each) => !each.error) ?? [];
  const retrying = useMutation({
    mutationFn: async () =>
      (
        await retryDeadLetters(
          possible.flatMap((each) => each.letters),
          false,
        )
      ).items,
    onError: toastError,
    onSuccess: (done) => {
      toastStarted(done);
      for (const noun of ['letters', 'executions', 'execution', 'stats'])
        void queries.invalidateQueries({ queryKey: [noun] });
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
        <p className="faint">These are the first {MOST_IDS.toLocaleString()}; the others stay for another time.</p>
      )}
      <Loaded query={preview} what="Finding out what would run">
        {(items) => (
          <>
            <p className="faint">
              Each execution is retried as a new one: what failed runs again, with all that depends on it, and what
              completed is kept.
            </p>
            <ul className="letters-plans">
              {retryPlans(items, letters).map((each) => (
                <RetryPlanRow key={each.key} plan={each} />
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </Dialog>
  );
}
