import type { NodeDetail } from '../../api/calls';
import { JsonView } from '../../components/JsonView';
import { hintText } from '../../reasonText';

type Fault = NonNullable<NodeDetail['error']>;

/**
 * An error with a hint, the detail that the handler gave (a template's reference, an HTTP
 * response), and its traceback.
 */
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
