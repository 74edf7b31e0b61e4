// What a retry would do. Executions of one workflow that failed at the same node share one plan,
// which is shown once.
import type { DeadLetter, RetriedLetters, RetryRun } from '../../api/calls';

export type RetryPlan = {
  key: string;
  workflow: string;
  runs: RetryRun[];
  /** Ids of the nodes whose outputs are reused. */
  reused: string[];
  /** Why the server would refuse the retry. */
  refusal: string | null;
  /** The executions that this plan would retry. */
  executions: string[];
  letters: number;
};

/** Refused plans first, then by the number of executions. */
export function retryPlans(items: RetriedLetters[], letters: DeadLetter[]): RetryPlan[] {
  const workflows = new Map(letters.map((letter) => [letter.id, letter.workflow]));
  const plans = new Map<string, RetryPlan>();
  for (const item of items) {
    const workflow = item.letters.map((id) => workflows.get(id)).find(Boolean) ?? '';
    const runs = item.runs ?? [];
    const reused = item.keeps ?? [];
    // The text of a refusal names its execution; its code says whether two are the same.
    const key = JSON.stringify(
      item.error
        ? [workflow, item.error.code]
        : [workflow, runs.map((run) => [run.node_id, run.reason]), reused],
    );
    const plan = plans.get(key);
    if (plan) {
      plan.executions.push(item.retry_of);
      plan.letters += item.letters.length;
    } else {
      plans.set(key, {
        key,
        workflow,
        runs,
        reused,
        refusal: item.error ? item.error.detail || item.error.title : null,
        executions: [item.retry_of],
        letters: item.letters.length,
      });
    }
  }
  return [...plans.values()].sort(
    (a, b) =>
      Number(b.refusal !== null) - Number(a.refusal !== null) ||
      b.executions.length - a.executions.length,
  );
}
