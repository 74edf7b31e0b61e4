import { Search } from 'lucide-react';
import { useState } from 'react';
import type { DeadLetter } from '../../api/calls';
import { Button, Id, Time } from '../../components/basics';
import { Link, paths } from '../../routing';
import type { LetterActions } from './GroupRow';
import { messageOfLetter } from './groups';
import { Tick } from './Tick';

const PART = 50;

/** The letters of a group. */
export function LetterTable({ letters, actions }: { letters: DeadLetter[]; actions: LetterActions }) {
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
              <th scope="col" className="letters-wide">
                Message
              </th>
              <th scope="col" className="right letters-wide">
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
              <LetterRow key={letter.id} letter={letter} actions={actions} />
            ))}
          </tbody>
        </table>
      </div>
      {more > 0 && (
        <Button className="letters-more" onClick={() => setShown(shown + 4 * PART)}>
          {`Show ${Math.min(more, 4 * PART)} more of this group`}
        </Button>
      )}
    </>
  );
}

function LetterRow({ letter, actions }: { letter: DeadLetter; actions: LetterActions }) {
  const { mayOperate, chosen, onChoose, onInspect } = actions;
  const message = messageOfLetter(letter);
  return (
    <tr className={letter.closed ? 'letters-closed' : undefined}>
      {mayOperate && (
        <td>
          <Tick
            state={chosen.has(letter.id) ? 'all' : 'none'}
            disabled={letter.closed !== null}
            label={`Select letter ${letter.id}`}
            onChange={(on) => onChoose([letter.id], on)}
          />
        </td>
      )}
      <td className="letters-execution">
        <Link to={paths.execution(letter.execution_id, { node: letter.node_id })}>
          <Id>{letter.execution_id}</Id>
        </Link>
        <Closed letter={letter} />
      </td>
      <td className="letters-wide letters-text" title={message}>
        {message}
      </td>
      <td className="right number letters-wide">{letter.attempts.length}</td>
      <td>
        <Time at={letter.at} />
      </td>
      <td className="right">
        <Button kind="quiet" icon={Search} aria-label={`Inspect letter ${letter.id}`} onClick={() => onInspect(letter)}>
          <span className="letters-wide">Inspect</span>
        </Button>
      </td>
    </tr>
  );
}

/** What became of it. */
export function Closed({ letter }: { letter: DeadLetter }) {
  if (!letter.closed) return null;
  return (
    <span className="tag">
      {letter.closed} <Time at={letter.closed_at} />
      {letter.retried_as && <Link to={paths.execution(letter.retried_as)}>see the retry</Link>}
    </span>
  );
}
