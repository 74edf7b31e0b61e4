import { useQuery } from '@tanstack/react-query';
import { RotateCw, Trash2 } from 'lucide-react';
import { type DeadLetter, getLetter } from '../../api/calls';
import { Button, Id, Loaded, Time } from '../../components/basics';
import { Dialog } from '../../components/dialog';
import { JsonView } from '../../components/json';
import { Link, paths } from '../../routing';
import type { LetterActions } from './GroupRow';
import { categoryOf, messageOfLetter } from './groups';
import { Closed } from './LetterTable';

type Props = { id: number; known: DeadLetter | undefined; actions: LetterActions; onClose: () => void };

/** One letter; it is asked for if the list doesn't have it (yet). */
export function LetterDialog({ id, known, actions, onClose }: Props) {
  const asked = useQuery({ queryKey: ['letters', 'one', id], queryFn: () => getLetter(id), enabled: !known });
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
        {(found) => <LetterDetail letter={found} />}
      </Loaded>
    </Dialog>
  );
}

function LetterDetail({ letter }: { letter: DeadLetter }) {
  const { error } = letter;
  return (
    <>
      <dl className="letters-facts">
        <dt>Execution</dt>
        <dd>
          <Link to={paths.execution(letter.execution_id, { node: letter.node_id })}>
            <Id>{letter.execution_id}</Id>
          </Link>{' '}
          <Closed letter={letter} />
        </dd>
        <dt>Workflow</dt>
        <dd>
          <Link to={paths.workflow(letter.workflow, { version: String(letter.version) })}>
            {letter.workflow}@{letter.version}
          </Link>
        </dd>
        <dt>Node</dt>
        <dd>
          <code>{letter.node_id}</code>{' '}
          <span className="faint">
            handler <code>{letter.handler}</code>
          </span>
        </dd>
        <dt>When</dt>
        <dd>
          <Time at={letter.at} exact /> <span className="faint">(</span>
          <Time at={letter.at} />
          <span className="faint">)</span>
        </dd>
      </dl>
      <section>
        <h3>
          Error <span className="tag">{categoryOf(letter)}</span> {error?.type && <code>{error.type}</code>}
        </h3>
        <pre className="letters-error">{messageOfLetter(letter)}</pre>
        {error?.detail !== undefined && error.detail !== null && (
          <JsonView value={error.detail} name={`letter-${letter.id}-detail`} search={false} />
        )}
        {error?.traceback && (
          <details className="letters-traceback">
            <summary>Traceback</summary>
            <pre className="letters-error">{error.traceback}</pre>
          </details>
        )}
      </section>
      <Attempts letter={letter} />
    </>
  );
}

function Attempts({ letter }: { letter: DeadLetter }) {
  if (letter.attempts.length === 0) return null;
  return (
    <section>
      <h3>Attempts</h3>
      <ol className="letters-attempts">
        {letter.attempts.map((each) => (
          <li key={each.attempt}>
            <span className="letters-attempt-number number">{each.attempt}</span>
            <div>
              <p>{each.error?.message ?? 'no message'}</p>
              <p className="faint">
                <Time at={each.at} exact />
                {each.error && ` · ${each.error.category}`}
                {each.worker_id && (
                  <>
                    {' · worker '}
                    <code>{each.worker_id}</code>
                  </>
                )}
              </p>
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
