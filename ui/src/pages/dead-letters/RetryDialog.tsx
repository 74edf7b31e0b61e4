import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type DeadLetter, type RetriedLetters, retryLetters } from '../../api/calls';
import { Button, Id, Loaded } from '../../components/basics';
import { Dialog } from '../../components/dialog';
import { toast, toastError } from '../../components/toasts';
import { Link, paths } from '../../routing';
import { PlanRow } from './PlanRow';
import { plansOf } from './plans';
import { counted, MOST_IDS } from './selection';

type Props = { letters: DeadLetter[]; onClose: () => void; onDone: () => void };

/** First what would run and what would be kept, by execution; then it is done for those where it can be. */
export function RetryDialog({ letters, onClose, onDone }: Props) {
  const queries = useQueryClient();
  // Letters of one execution are retried together, so all go in one call; the rest waits for the next.
  const ids = letters.slice(0, MOST_IDS).map((each) => each.id);
  const preview = useQuery({
    queryKey: ['letters-retry', ids],
    queryFn: async () => (await retryLetters(ids, true)).items,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const possible = preview.data?.filter((each) => !each.error) ?? [];
  const retrying = useMutation({
    mutationFn: async () =>
      (
        await retryLetters(
          possible.flatMap((each) => each.letters),
          false,
        )
      ).items,
    onError: toastError,
    onSuccess: (done) => {
      report(done);
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
              {plansOf(items, letters).map((each) => (
                <PlanRow key={each.key} plan={each} />
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </Dialog>
  );
}

const MOST_LINKS = 5;

function report(done: RetriedLetters[]): void {
  const made = done.flatMap((each) => (each.execution_id && !each.error ? [each.execution_id] : []));
  for (const each of done.filter((one) => one.error).slice(0, 3)) {
    toast(`${each.retry_of}: ${each.error?.detail}`, 'failed');
  }
  if (made.length === 0) return;
  toast(
    <>
      {`${counted(made.length, 'execution')} started:`}
      {made.slice(0, MOST_LINKS).map((id) => (
        <span key={id} className="letters-made">
          <Link to={paths.execution(id)}>
            <Id>{id}</Id>
          </Link>
        </span>
      ))}
      {made.length > MOST_LINKS && <span className="letters-made faint">{`and ${made.length - MOST_LINKS} more`}</span>}
    </>,
  );
}
