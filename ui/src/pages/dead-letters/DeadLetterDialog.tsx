import { useQuery } from '@tanstack/react-query';
import { RotateCw, Trash2 } from 'lucide-react';
import { type DeadLetter, getDeadLetter } from '../../api/calls';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { Loaded } from '../../components/Loaded';
import type { DeadLetterActions } from './actions';
import { DeadLetterDetail } from './DeadLetterDetail';

type Props = {
  id: number;
  listed: DeadLetter | undefined;
  actions: DeadLetterActions;
  onClose: () => void;
};

/** One dead letter. It is fetched if the list doesn't have it (yet). */
export function DeadLetterDialog({ id, listed, actions, onClose }: Props) {
  const letterQuery = useQuery({
    queryKey: ['dead-letters', 'one', id],
    queryFn: () => getDeadLetter(id),
    enabled: !listed,
  });
  const letter = listed ?? letterQuery.data;
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
      <Loaded query={{ data: letter, error: letterQuery.error, refetch: letterQuery.refetch }}>
        {(loaded) => <DeadLetterDetail letter={loaded} />}
      </Loaded>
    </Dialog>
  );
}
