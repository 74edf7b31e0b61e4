import type { NodeDetail } from '../../api/calls';
import { JsonView } from '../../components/JsonView';
import { hintText } from '../../reasons';

type Fault = NonNullable<NodeDetail['error']>;

/** What went wrong, what to do about it, and all that the handler said: a template's reference, an HTTP answer. */
export function ErrorDetail({ error }: { error: Fault }) {
  const hint = hintText(error.category);
  return (
    <section className="fault" aria-label="Error">
      <p className="fault-message">
        <span className="tag">{error.category}</span>{' '}
        {error.type && !error.message.startsWith(error.type) && <strong>{error.type}: </strong>}
        {error.message}
      </p>
      {hint && <p className="faint">{hint}</p>}
      {error.detail !== null && error.detail !== undefined && (
        <JsonView value={error.detail} name="error detail" search={false} />
      )}
      {error.traceback && (
        <details>
          <summary>Traceback</summary>
          <pre className="text-block">{error.traceback}</pre>
        </details>
      )}
    </section>
  );
}
