import { toast } from '../../components/toast';
import { BulkRefusals } from './BulkRefusals';
import { executionsText, type Summary } from './bulkOutcomes';

/** Says how many requests succeeded, and why the others were refused. */
export function toastOutcome(participle: string, { done, refused }: Summary): void {
  if (refused.length === 0) {
    toast(`${executionsText(done.length)} ${participle}`);
    return;
  }
  const text = (
    <>
      {executionsText(done.length)} {participle}.
      <BulkRefusals title={`Not ${participle}`} refused={refused} />
    </>
  );
  toast(text, 'failed');
}
