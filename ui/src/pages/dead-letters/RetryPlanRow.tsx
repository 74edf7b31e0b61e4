import { TriangleAlert } from 'lucide-react';
import { PlanExecutions } from './PlanExecutions';
import { PlanNodes } from './PlanNodes';
import type { RetryPlan } from './retryPlans';

export function RetryPlanRow({ plan }: { plan: RetryPlan }) {
  const { runs, reused, refusal } = plan;
  return (
    <li className={refusal === null ? 'dead-letters-plan' : 'dead-letters-plan refused-plan'}>
      <PlanExecutions plan={plan} />
      {refusal === null ? (
        <>
          <PlanNodes
            title={`Runs ${runs.length}`}
            nodes={runs.map((run) => ({ nodeId: run.node_id, reason: run.reason }))}
          />
          {reused.length > 0 && (
            <PlanNodes
              title={`Reuses ${reused.length}`}
              nodes={reused.map((nodeId) => ({ nodeId, reason: '' }))}
              quiet
            />
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
