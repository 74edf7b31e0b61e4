import type { NodeDetail } from '../../api/calls';
import { JsonView } from '../../components/JsonView';
import { nodeHasEnded } from '../../states';

export function NodeOutput({ detail }: { detail: NodeDetail }) {
  if (detail.state === 'COMPLETED')
    return <JsonView value={detail.output ?? null} name={`output of ${detail.node_id}`} />;
  const why = nodeHasEnded(detail.state) ? 'It has none.' : 'It has none yet.';
  return <p className="faint">{why} Only a node that completed has an output.</p>;
}
