import { useState } from 'react';
import type { DeadLetter } from '../../api/calls';
import { Button } from '../../components/Button';
import type { DeadLetterActions } from './actions';
import { DeadLetterRow } from './DeadLetterRow';

const PART = 50;

/** The dead letters of a group. */
export function DeadLetterTable({
  letters,
  actions,
}: {
  letters: DeadLetter[];
  actions: DeadLetterActions;
}) {
  const [shown, setShown] = useState(PART);
  const more = letters.length - shown;
  return (
    <>
      <div className="table-wrap">
        <table>
          <thead>
            <tr>
              {actions.mayOperate && (
                <th scope="col">
                  <span className="visually-hidden">Selected</span>
                </th>
              )}
              <th scope="col">Execution</th>
              <th scope="col" className="dead-letters-wide">
                Message
              </th>
              <th scope="col" className="right dead-letters-wide">
                Attempts
              </th>
              <th scope="col">When</th>
              <th scope="col">
                <span className="visually-hidden">Inspect</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {letters.slice(0, shown).map((letter) => (
              <DeadLetterRow key={letter.id} letter={letter} actions={actions} />
            ))}
          </tbody>
        </table>
      </div>
      {more > 0 && (
        <Button className="dead-letters-more" onClick={() => setShown(shown + 4 * PART)}>
          {`Show ${Math.min(more, 4 * PART)} more of this group`}
        </Button>
      )}
    </>
  );
}
