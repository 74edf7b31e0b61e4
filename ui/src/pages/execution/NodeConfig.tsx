import type { NodeDetail } from '../../api/calls';
import { JsonView } from '../../components/JsonView';

export function NodeConfig({ detail }: { detail: NodeDetail }) {
  const { config, resolved_config: resolved, unresolved } = detail;
  return (
    <div className="node-parts">
      <h3>As the handler got it</h3>
      {resolved ? (
        <JsonView value={resolved} name={`config of ${detail.node_id}`} />
      ) : (
        <p className="faint">{unresolved ?? 'It is filled in when the node starts.'}</p>
      )}
      <p className="faint">Secrets are filled in by the worker, and shown nowhere.</p>
      <h3>As it is written</h3>
      <JsonView value={config} name="config as written" search={false} />
    </div>
  );
}
