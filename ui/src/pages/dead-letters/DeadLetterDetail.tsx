import type { DeadLetter } from '../../api/calls';
import { Id } from '../../components/Id';
import { JsonView } from '../../components/JsonView';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { ClosedTag } from './ClosedTag';
import { DeadLetterAttempts } from './DeadLetterAttempts';
import { categoryOf, messageOfLetter } from './groups';

export function DeadLetterDetail({ letter }: { letter: DeadLetter }) {
  const { error } = letter;
  return (
    <>
      <dl className="dead-letters-facts">
        <dt>Execution</dt>
        <dd>
          <Link to={paths.execution(letter.execution_id, { node: letter.node_id })}>
            <Id>{letter.execution_id}</Id>
          </Link>{' '}
          <ClosedTag letter={letter} />
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
          Error <span className="tag">{categoryOf(letter)}</span>{' '}
          {error?.type && <code>{error.type}</code>}
        </h3>
        <pre className="dead-letters-error">{messageOfLetter(letter)}</pre>
        {error?.detail !== undefined && error.detail !== null && (
          <JsonView value={error.detail} name={`letter-${letter.id}-detail`} search={false} />
        )}
        {error?.traceback && (
          <details className="dead-letters-traceback">
            <summary>Traceback</summary>
            <pre className="dead-letters-error">{error.traceback}</pre>
          </details>
        )}
      </section>
      <DeadLetterAttempts letter={letter} />
    </>
  );
}
