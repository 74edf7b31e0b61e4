import { TriangleAlert } from 'lucide-react';
import { PlanExecutions } from './PlanExecutions';
import { PlanNodes } from './PlanNodes';
import type { RetryPlan } from './retryPlans';

export function RetryPlanRow({ plan }: { plan: RetryPlan }) {
  const { runs, keeps, refusal } = plan;
  return (
    <li className={refusal === null ? 'dead-letters-plan' : 'dead-letters-plan refused-plan'}>
      <PlanExecutions plan={plan} />
      {refusal === null ? (
        <>
          <PlanNodes title={`Runs ${runs.length}`} nodes={runs.map((run) => ({ id: run.node_id, why: run.reason }))} />
          {keeps.length > 0 && (
            <PlanNodes title={`Reuses ${keeps.length}`} nodes={keeps.map((id) => ({ id, why: '' }))} quiet />
          )}
        </>
      ) : (
        <p className="refused dead-letters-refused">
          <TriangleAlert size={15} aria-hidden="true" /> {refusal}
        </p>
      )}
    </li>
  );
}
