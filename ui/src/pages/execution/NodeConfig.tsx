import type { NodeDetail } from '../../api/calls';
import { JsonView } from '../../components/JsonView';

export function NodeConfig({ detail }: { detail: NodeDetail }) {
  const { config, resolved_config: resolved, unresolved } = detail;
  return (
    <div className="node-parts">
      <h3>As the handler received it</h3>
      {resolved ? (
        <JsonView value={resolved} name={`config of ${detail.node_id}`} />
      ) : (
        <p className="faint">{unresolved ?? 'The config is resolved when the node starts.'}</p>
      )}
      <p className="faint">The worker fills in secrets. They are never shown.</p>
      <h3>As written in the workflow</h3>
      <JsonView value={config} name="config as written" search={false} />
    </div>
  );
}
