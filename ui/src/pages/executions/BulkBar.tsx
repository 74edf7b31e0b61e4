import { Ban, RotateCcw, X } from 'lucide-react';
import { useState } from 'react';
import type { ListedExecution } from '../../api/calls';
import { Button } from '../../components/Button';
import { hasEnded } from '../../states';
import { BulkCancelDialog } from './BulkCancelDialog';
import { BulkRetryDialog } from './BulkRetryDialog';

/** What can be done to the selected rows; it stays in sight while the list is scrolled. */
export function BulkBar({ rows, onClear }: { rows: ListedExecution[]; onClear: () => void }) {
  const [asked, setAsked] = useState<'cancel' | 'retry' | null>(null);
  const open = rows.filter((row) => !hasEnded(row.state)).length;
  const close = () => setAsked(null);
  return (
    <section className="xs-bulk" aria-label="Selected executions">
      <span role="status">{rows.length} selected</span>
      <span className="spacer" />
      <Button icon={RotateCcw} disabled={open === rows.length} onClick={() => setAsked('retry')}>
        Retry
      </Button>
      <Button kind="danger" icon={Ban} disabled={open === 0} onClick={() => setAsked('cancel')}>
        Cancel
      </Button>
      <Button kind="quiet" icon={X} aria-label="Clear the selection" title="Clear the selection" onClick={onClear} />
      {asked === 'cancel' && <BulkCancelDialog rows={rows} onClose={close} onDone={onClear} />}
      {asked === 'retry' && <BulkRetryDialog rows={rows} onClose={close} onDone={onClear} />}
    </section>
  );
}
