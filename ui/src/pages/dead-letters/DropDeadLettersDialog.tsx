import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type DeadLetter, dropDeadLetters } from '../../api/calls';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { toast, toastError } from '../../components/toast';
import { groupsOf } from './groups';
import { counted, portions } from './selection';

type Props = { letters: DeadLetter[]; onClose: () => void; onDone: () => void };

const FEW = 5;

export function DropDeadLettersDialog({ letters, onClose, onDone }: Props) {
  const queries = useQueryClient();
  const dropping = useMutation({
    mutationFn: async () => {
      let dropped = 0;
      const ids = letters.map((letter) => letter.id);
      for (const part of portions(ids)) {
        const answer = await dropDeadLetters(part);
        dropped += answer.dropped;
      }
      return dropped;
    },
    onError: toastError,
    onSuccess: (dropped) => {
      toast(`${counted(dropped, 'dead letter')} dropped.`);
      onDone();
    },
    // Some may have been dropped before a later request failed.
    onSettled: () => {
      for (const noun of ['dead-letters', 'stats']) {
        void queries.invalidateQueries({ queryKey: [noun] });
      }
    },
  });
  const groups = groupsOf(letters);
  return (
    <ConfirmDialog
      danger
      title={`Drop ${counted(letters.length, 'dead letter')}?`}
      action={`Drop ${letters.length.toLocaleString()}`}
      busy={dropping.isPending}
      onConfirm={() => dropping.mutate()}
      onClose={onClose}
    >
      <ul className="dead-letters-dropping">
        {groups.slice(0, FEW).map((group) => (
          <li key={group.key}>
            <strong className="number">{group.letters.length}</strong>
            <span className="dead-letters-message">{group.message}</span>
          </li>
        ))}
        {groups.length > FEW && (
          <li className="faint">and {counted(groups.length - FEW, 'other group')}</li>
        )}
      </ul>
      <p className="faint">
        They are removed from this list and not retried. Their executions stay as they are and can
        still be retried.
      </p>
    </ConfirmDialog>
  );
}
