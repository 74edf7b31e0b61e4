import { ArrowRight, TriangleAlert } from 'lucide-react';
import { Button } from '../../components/Button';
import { hintText } from '../../reasonText';
import type { Run } from './useRun';

/** Why the execution failed, in one line, with a button that opens the node. */
export function FailureCause({ run, onSelect }: { run: Run; onSelect: (nodeId: string) => void }) {
  const { error } = run.execution;
  if (!error || run.state !== 'FAILED') return null;
  const hint = hintText(error.category);
  return (
    <div className="error-box cause" role="alert">
      <TriangleAlert size={18} aria-hidden="true" />
      <div>
        <p>
          {error.node_id && <strong>{error.node_id} failed: </strong>}
          {error.message}
        </p>
        {hint && <p className="faint">{hint}</p>}
      </div>
      {error.node_id && (
        <Button icon={ArrowRight} onClick={() => onSelect(error.node_id as string)}>
          Open the node
        </Button>
      )}
    </div>
  );
}
