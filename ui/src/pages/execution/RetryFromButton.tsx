import { RotateCcw } from 'lucide-react';
import { useMay } from '../../api/useMay';
import { Button } from '../../components/Button';
import { useQueryString } from '../../routing/useQueryString';
import { hasEnded } from '../../states';
import type { Run } from './useRun';

/** Previews a retry that runs this node and what comes after it, also if all of it completed. */
export function RetryFromButton({ run, nodeId }: { run: Run; nodeId: string }) {
  const [query, change] = useQueryString();
  const mayOperate = useMay('operate');
  const isOffered = mayOperate && hasEnded(run.state) && !run.execution.retried_as;
  if (!isOffered || query.get('from') === nodeId) return null;
  const label = 'Retry from this node';
  return (
    <Button
      kind="quiet"
      icon={RotateCcw}
      aria-label={label}
      title={label}
      onClick={() => change({ retry: 'yes', tab: null, from: nodeId })}
    />
  );
}
