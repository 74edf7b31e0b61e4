// A retry is looked at before it is made: the server says what would run again, the graph shows it.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { RotateCcw } from 'lucide-react';
import { useMemo } from 'react';
import { type RetryPlan, retry } from '../../api/calls';
import { Button, ErrorBox } from '../../components/basics';
import { toast } from '../../components/toasts';
import { navigate, paths, useQueryString } from '../../routing';
import type { Run } from './useRun';

export type Preview = {
  plan: RetryPlan | undefined;
  error: unknown;
  /** By node: why it would run; null if it is kept. */
  marks: ReadonlyMap<string, string | null> | null;
};

function useChoice(): { from?: string; version: string } {
  const [query] = useQueryString();
  const from = query.get('from');
  return { ...(from ? { from } : {}), version: query.get('run-version') ?? 'same' };
}

export function useRetryPlan(run: Run, wanted: boolean): Preview {
  const choice = useChoice();
  const id = run.execution.execution_id;
  const asked = useQuery({
    queryKey: ['execution', id, 'retry', choice],
    queryFn: () => retry(id, choice, true),
    enabled: wanted,
    retry: false,
  });
  const plan = wanted ? asked.data : undefined;
  const marks = useMemo(() => {
    if (!plan) return null;
    const kept = plan.keeps.map((node): [string, null] => [node, null]);
    return new Map<string, string | null>([
      ...kept,
      ...plan.runs.map((each): [string, string] => [each.node_id, each.reason]),
    ]);
  }, [plan]);
  return { plan, error: wanted ? asked.error : null, marks };
}

export function RetryBar({ run, plan: { plan, error } }: { run: Run; plan: Preview }) {
  const [, change] = useQueryString();
  const choice = useChoice();
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
function choices(run: Run, chosen: string | undefined): string[] {
  const ids = run.store.ids;
  if (ids.length <= MOST_CHOICES) return ids;
  return chosen ? [chosen] : [];
}
