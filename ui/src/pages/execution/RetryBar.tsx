// A retry is looked at before it is made: the server says what would run again, the graph shows it.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { RotateCcw } from 'lucide-react';
import { retry } from '../../api/calls';
import { Button } from '../../components/Button';
import { ErrorBox } from '../../components/ErrorBox';
import { toast } from '../../components/toast';
import { navigate } from '../../routing/navigation';
import { paths } from '../../routing/paths';
import { useQueryString } from '../../routing/useQueryString';
import { useRetryOptions } from './useRetryOptions';
import type { RetryPreview } from './useRetryPreview';
import type { Run } from './useRun';

export function RetryBar({ run, plan: { plan, error } }: { run: Run; plan: RetryPreview }) {
  const [, change] = useQueryString();
  const choice = useRetryOptions();
  const queries = useQueryClient();
  const close = () => change({ retry: null, from: null, 'run-version': null });
  const making = useMutation({
    mutationFn: () => retry(run.execution.execution_id, choice, false),
    onSuccess: (made) => {
      // or whoever comes back within a second is shown it as it was, without the way to its retry
      void queries.invalidateQueries({ queryKey: ['execution', run.execution.execution_id], exact: true });
      toast(`Retried: ${made.runs.length} nodes run again, ${made.keeps.length} are kept.`);
      if (made.execution_id) navigate(paths.execution(made.execution_id));
    },
  });
  return (
    <section className="card retry-bar" aria-label="Retry">
      <div className="retry-words">
        <h2>Retry</h2>
        {plan ? (
          <p>
            <strong>{plan.runs.length}</strong> of {plan.runs.length + plan.keeps.length} nodes run again in a new
            execution, marked in the graph. The outputs of the other {plan.keeps.length} are kept.
          </p>
        ) : (
          !error && <p className="faint">Asking what would run …</p>
        )}
      </div>
      <label className="field">
        Also from this node on
        <select value={choice.from ?? ''} onChange={(event) => change({ from: event.target.value })}>
          <option value="">only what didn't complete</option>
          {choices(run, choice.from).map((id) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      </label>
      <label className="field">
        Version
        <select value={choice.version} onChange={(event) => change({ 'run-version': event.target.value })}>
          <option value="same">the same ({run.execution.version})</option>
          <option value="latest">the latest</option>
        </select>
      </label>
      <div className="actions">
        <Button onClick={close}>Back</Button>
        <Button
          kind="primary"
          icon={RotateCcw}
          disabled={!plan}
          busy={making.isPending}
          onClick={() => making.mutate()}
        >
          {plan ? `Run ${plan.runs.length} nodes` : 'Run'}
        </Button>
      </div>
      {(error || making.error) && <ErrorBox error={making.error ?? error} />}
    </section>
  );
}

const MOST_CHOICES = 500;

/** All nodes of a graph that a list can hold; else the one that was chosen in the graph. */
function choices(run: Run, chosen: string | null | undefined): readonly string[] {
  const ids = run.store.ids;
  if (ids.length <= MOST_CHOICES) return ids;
  return chosen ? [chosen] : [];
}
