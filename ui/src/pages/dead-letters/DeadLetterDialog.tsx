import { useQuery } from '@tanstack/react-query';
import { RotateCw, Trash2 } from 'lucide-react';
import { type DeadLetter, getDeadLetter } from '../../api/calls';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { Loaded } from '../../components/Loaded';
import type { DeadLetterActions } from './actions';
import { DeadLetterDetail } from './DeadLetterDetail';

type Props = { id: number; known: DeadLetter | undefined; actions: DeadLetterActions; onClose: () => void };

/** One letter; it is asked for if the list doesn't have it (yet). */
export function DeadLetterDialog({ id, known, actions, onClose }: Props) {
  const asked = useQuery({ queryKey: ['letters', 'one', id], queryFn: () => getDeadLetter(id), enabled: !known });
  const letter = known ?? asked.data;
  return (
    <Dialog
      wide
      title={`Dead letter ${id}`}
      onClose={onClose}
      actions={
        actions.mayOperate &&
        letter?.closed === null && (
          <>
            <Button kind="danger" icon={Trash2} onClick={() => actions.onDrop([letter])}>
              Drop
            </Button>
            <Button kind="primary" icon={RotateCw} onClick={() => actions.onRetry([letter])}>
              Retry
            </Button>
          </>
        )
      }
    >
      <Loaded query={{ data: letter, error: asked.error, refetch: asked.refetch }}>
        {(found) => <DeadLetterDetail letter={found} />}
      </Loaded>
    </Dialog>
  );
}
