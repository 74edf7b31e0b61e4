import { toast } from '../../components/toast';
import { BulkRefusals } from './BulkRefusals';
import { executionsText, type Summary } from './bulkOutcomes';

/** Says how many it was done to, and why not to the others. */
export function toastOutcome(said: string, { done, refused }: Summary): void {
  if (refused.length === 0) {
    toast(`${executionsText(done.length)} ${said}`);
    return;
  }
  const text = (
    <>
      {executionsText(done.length)} {said}.
      <BulkRefusals title={`Not ${said}`} refused={refused} />
    </>
  );
  toast(text, 'failed');
}
