import { Ban, Columns2, RotateCcw, X } from 'lucide-react';
import { useState } from 'react';
import type { ListedExecution } from '../../api/calls';
import { Button } from '../../components/Button';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { hasEnded } from '../../states';
import { BulkCancelDialog } from './BulkCancelDialog';
import { BulkRetryDialog } from './BulkRetryDialog';

/** Actions for the selected rows. It stays in sight while the list is scrolled. */
export function BulkBar({ rows, onClear }: { rows: ListedExecution[]; onClear: () => void }) {
  const [dialog, setDialog] = useState<'cancel' | 'retry' | null>(null);
  const openCount = rows.filter((row) => !hasEnded(row.state)).length;
  const close = () => setDialog(null);
  const [first, second] = rows;
  return (
    <section className="xs-bulk" aria-label="Selected executions">
      <span role="status">{rows.length} selected</span>
      <span className="spacer" />
      {first && second && rows.length === 2 && (
        <Link className="button" to={paths.compare(second.execution_id, first.execution_id)}>
          <Columns2 size={16} aria-hidden="true" />
          <span>Compare</span>
        </Link>
      )}
      <Button
        icon={RotateCcw}
        disabled={openCount === rows.length}
        onClick={() => setDialog('retry')}
      >
        Retry
      </Button>
      <Button
        kind="danger"
        icon={Ban}
        disabled={openCount === 0}
        onClick={() => setDialog('cancel')}
      >
        Cancel
      </Button>
      <Button
        kind="quiet"
        icon={X}
        aria-label="Clear the selection"
        title="Clear the selection"
        onClick={onClear}
      />
      {dialog === 'cancel' && <BulkCancelDialog rows={rows} onClose={close} onDone={onClear} />}
      {dialog === 'retry' && <BulkRetryDialog rows={rows} onClose={close} onDone={onClear} />}
    </section>
  );
}
