import type { NodeDetail } from '../../api/calls';
import { JsonView } from '../../components/JsonView';
import { nodeHasEnded } from '../../states';

export function NodeOutput({ detail }: { detail: NodeDetail }) {
  if (detail.state === 'COMPLETED') {
    return <JsonView value={detail.output ?? null} name={`output of ${detail.node_id}`} />;
  }
  const why = nodeHasEnded(detail.state)
    ? 'This node has no output.'
    : 'This node has no output yet.';
  return <p className="faint">{why} Only a completed node has one.</p>;
}
