import type { GraphNode } from '../../api/calls';
import { StateBadge } from '../../components/StateBadge';
import { reasonText } from '../../reasonText';
import { harmlessClass } from '../../states';
import { durationText, secondsBetween } from '../../time';

export function NodeRow({
  node,
  chosen,
  onSelect,
}: {
  node: GraphNode;
  chosen: boolean;
  onSelect: (nodeId: string) => void;
}) {
  const took = secondsBetween(node.started_at, node.finished_at);
  const classes = `node-row ${harmlessClass(node)}`;
  return (
    <button
      type="button"
      className={chosen ? `${classes} chosen` : classes}
      onClick={() => onSelect(node.id)}
    >
      <StateBadge state={node.state} />
      <span className="node-row-name">{node.id}</span>
      <span className="faint">{node.handler}</span>
      <span className="faint node-row-why">{node.error ?? reasonText(node.reason)}</span>
      <span className="number">{took === null ? '' : durationText(took)}</span>
    </button>
  );
}
