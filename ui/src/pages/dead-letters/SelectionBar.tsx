import { RotateCw, Trash2, X } from 'lucide-react';
import type { DeadLetter } from '../../api/calls';
import { Button } from '../../components/Button';
import type { DeadLetterActions } from './actions';

type BarProps = { letters: DeadLetter[]; actions: DeadLetterActions; onClear: () => void };

/** Actions for the selected dead letters. It stays in sight while the list is scrolled. */
export function SelectionBar({ letters, actions, onClear }: BarProps) {
  return (
    <section className="dead-letters-bar" aria-label="Selected dead letters">
      <span role="status">
        <strong className="number">{letters.length.toLocaleString()}</strong> selected
      </span>
      <span className="spacer" />
      <Button kind="primary" icon={RotateCw} onClick={() => actions.onRetry(letters)}>
        Retry
      </Button>
      <Button kind="danger" icon={Trash2} onClick={() => actions.onDrop(letters)}>
        Drop
      </Button>
      <Button
        kind="quiet"
        icon={X}
        aria-label="Clear the selection"
        title="Clear the selection"
        onClick={onClear}
      />
    </section>
  );
}
