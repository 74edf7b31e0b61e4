import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ListedExecution, steerMany } from '../../api/calls';
import { Loaded } from '../../components/basics';
import { Confirm } from '../../components/dialog';
import { toastError } from '../../components/toasts';
import { hasEnded } from '../../states';
import { Refusals, tellOutcome } from './BulkOutcome';
import { executionsText, inParts, nodesText, type Outcome, summaryOf } from './bulk';
import { shortId } from './filters';

type BulkProps = { rows: ListedExecution[]; onClose: () => void; onDone: () => void };

const LINES_SHOWN = 50;

async function steerAll(action: 'cancel' | 'retry', ids: string[], preview = false): Promise<Outcome[]> {
  return inParts(ids, async (part) => (await steerMany(action, part, preview)).items as Outcome[]);
}

function useSteering(action: 'cancel' | 'retry', said: string, { onClose, onDone }: BulkProps) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (ids: string[]) => steerAll(action, ids),
    onSuccess: (outcomes) => {
      tellOutcome(said, summaryOf(outcomes));
      onDone();
      onClose();
    },
    onError: toastError,
    onSettled: () => {
      for (const noun of ['executions', 'execution']) void queries.invalidateQueries({ queryKey: [noun] });
    },
  });
}

export function CancelMany(props: BulkProps) {
  const open = props.rows.filter((row) => !hasEnded(row.state)).map((row) => row.execution_id);
  const ended = props.rows.length - open.length;
  const steering = useSteering('cancel', 'cancelled', props);
  return (
    <Confirm
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
    </Confirm>
  );
}

export function RetryMany(props: BulkProps) {
  const ids = props.rows.map((row) => row.execution_id);
  const preview = useQuery({
    queryKey: ['retry-preview', ids],
    queryFn: async () => summaryOf(await steerAll('retry', ids, true)),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const steering = useSteering('retry', 'retried', props);
  const able = preview.data?.done ?? [];
  return (
    <Confirm
      title={preview.data ? `Retry ${executionsText(able.length)}?` : 'Retry'}
      action={preview.data ? `Retry ${executionsText(able.length)}` : 'Retry'}
      busy={steering.isPending || able.length === 0}
      onConfirm={() => steering.mutate(able.map((each) => each.execution_id))}
      onClose={props.onClose}
    >
      <p>A new execution runs what didn't complete, and keeps the outputs of what did.</p>
      <Loaded query={preview} what="Looking at what would run">
        {({ done, refused }) => (
          <>
            {done.length > 0 && <WouldRun outcomes={done} rows={props.rows} />}
            <Refusals title="Can't be retried" refused={refused} />
          </>
        )}
      </Loaded>
    </Confirm>
  );
}

function WouldRun({ outcomes, rows }: { outcomes: Outcome[]; rows: ListedExecution[] }) {
  const total = outcomes.reduce((sum, each) => sum + (each.runs?.length ?? 0), 0);
  const named = new Map(rows.map((row) => [row.execution_id, `${row.workflow}@${row.version}`]));
  return (
    <section className="xs-would">
      <h3>{nodesText(total)} would run</h3>
      <ul>
        {outcomes.slice(0, LINES_SHOWN).map((each) => (
          <li key={each.execution_id}>
            <span>
              {named.get(each.execution_id)} <code title={each.execution_id}>{shortId(each.execution_id)}</code>
            </span>
            <span className="faint">
              {nodesText(each.runs?.length ?? 0)}, {each.keeps?.length ?? 0} kept
            </span>
          </li>
        ))}
      </ul>
      {outcomes.length > LINES_SHOWN && <p className="faint">and {outcomes.length - LINES_SHOWN} more</p>}
    </section>
  );
}
