import { Search } from 'lucide-react';
import type { DeadLetter } from '../../api/calls';
import { Button } from '../../components/Button';
import { Id } from '../../components/Id';
import { Time } from '../../components/Time';
import { TriStateCheckbox } from '../../components/TriStateCheckbox';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import type { DeadLetterActions } from './actions';
import { ClosedTag } from './ClosedTag';
import { messageOfLetter } from './groups';

export function DeadLetterRow({
  letter,
  actions,
}: {
  letter: DeadLetter;
  actions: DeadLetterActions;
}) {
  const { mayOperate, chosen, onChoose, onInspect } = actions;
  const message = messageOfLetter(letter);
  return (
    <tr className={letter.closed ? 'dead-letters-closed' : undefined}>
      {mayOperate && (
        <td>
          <TriStateCheckbox
            state={chosen.has(letter.id) ? 'all' : 'none'}
            disabled={letter.closed !== null}
            label={`Select dead letter ${letter.id}`}
            onChange={(on) => onChoose([letter.id], on)}
          />
        </td>
      )}
      <td className="dead-letters-execution">
        <Link to={paths.execution(letter.execution_id, { node: letter.node_id })}>
          <Id>{letter.execution_id}</Id>
        </Link>
        <ClosedTag letter={letter} />
      </td>
      <td className="dead-letters-wide dead-letters-text" title={message}>
        {message}
      </td>
      <td className="right number dead-letters-wide">{letter.attempts.length}</td>
      <td>
        <Time at={letter.at} />
      </td>
      <td className="right">
        <Button
          kind="quiet"
          icon={Search}
          aria-label={`Inspect dead letter ${letter.id}`}
          onClick={() => onInspect(letter)}
        >
          <span className="dead-letters-wide">Inspect</span>
        </Button>
      </td>
    </tr>
  );
}
