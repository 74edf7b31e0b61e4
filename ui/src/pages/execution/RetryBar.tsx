import { useMutation, useQueryClient } from '@tanstack/react-query';
import { RotateCcw } from 'lucide-react';
import { retry } from '../../api/calls';
import { Button } from '../../components/Button';
import { ErrorBox } from '../../components/ErrorBox';
import { toast } from '../../components/toast';
import { navigate } from '../../routing/navigation';
import { paths } from '../../routing/paths';
import { useQueryString } from '../../routing/useQueryString';
import { RetryDetails } from './RetryDetails';
import { hasItems } from './retryTexts';
import { useRetryOptions } from './useRetryOptions';
import type { RetryPreview } from './useRetryPreview';
import type { Run } from './useRun';

/** A retry before it is made: the server says what would run again, and the graph shows it. */
export function RetryBar({ run, preview }: { run: Run; preview: RetryPreview }) {
  const { plan, error } = preview;
  const [, change] = useQueryString();
  const options = useRetryOptions();
  const queries = useQueryClient();
  const close = () => change({ retry: null, from: null, items: null, 'run-version': null });
  const retrying = useMutation({
    mutationFn: () => retry(run.execution.execution_id, options, false),
    onSuccess: (retried) => {
      // else the cached execution would be shown for another second, without the link to its retry
      void queries.invalidateQueries({
        queryKey: ['execution', run.execution.execution_id],
        exact: true,
      });
      toast(`Retried: ${retried.runs.length} nodes run again, ${retried.keeps.length} are reused.`);
      if (retried.execution_id) navigate(paths.execution(retried.execution_id));
    },
  });
  return (
    <section className="card retry-bar" aria-label="Retry">
      <div className="retry-words">
        <h2>Retry</h2>
        {plan ? (
          <p>
            <strong>{plan.runs.length}</strong> of {plan.runs.length + plan.keeps.length} nodes run
            again in a new execution. They are marked in the graph. The outputs of the other{' '}
            {plan.keeps.length} are reused.
          </p>
        ) : (
          !error && <p className="faint">Checking what would run …</p>
        )}
        {plan && <RetryDetails runs={plan.runs} />}
      </div>
      <label className="field">
        Also rerun from this node
        <select
          value={options.from ?? ''}
          onChange={(event) => change({ from: event.target.value })}
        >
          <option value="">only nodes that didn't complete</option>
          {nodeChoices(run, options.from).map((nodeId) => (
            <option key={nodeId}>{nodeId}</option>
          ))}
        </select>
      </label>
      <label className="field">
        Version
        <select
          value={options.version}
          onChange={(event) => change({ 'run-version': event.target.value })}
        >
          <option value="same">the same ({run.execution.version})</option>
          <option value="latest">the latest</option>
        </select>
      </label>
      {(options.items || (plan && hasItems(plan.runs))) && (
        <label className="field">
          Items
          <select
            value={options.items ?? ''}
            onChange={(event) => change({ items: event.target.value })}
          >
            <option value="">as the retry needs</option>
            <option value="failed">only those that didn't complete</option>
            <option value="all">all of them</option>
          </select>
        </label>
      )}
      <div className="actions">
        <Button onClick={close}>Back</Button>
        <Button
          kind="primary"
          icon={RotateCcw}
          disabled={!plan}
          busy={retrying.isPending}
          onClick={() => retrying.mutate()}
        >
          {plan ? `Run ${plan.runs.length} nodes` : 'Run'}
        </Button>
      </div>
      {(error || retrying.error) && <ErrorBox error={retrying.error ?? error} />}
    </section>
  );
}

const CHOICES_MAX = 500;

/**
 * The nodes to choose from: all of them if there aren't too many for a list, and the one from the
 * address, which may be inside of an item.
 */
function nodeChoices(run: Run, chosen: string | null | undefined): readonly string[] {
  const ids = run.store.ids;
  const listed = ids.length <= CHOICES_MAX ? ids : [];
  return chosen && !listed.includes(chosen) ? [...listed, chosen] : listed;
}
