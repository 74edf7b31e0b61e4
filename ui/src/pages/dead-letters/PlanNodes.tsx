const NODES_SHOWN_MAX = 12;

export function PlanNodes({
  title,
  nodes,
  quiet = false,
}: {
  title: string;
  nodes: { nodeId: string; reason: string }[];
  quiet?: boolean;
}) {
  return (
    <div className={quiet ? 'dead-letters-nodes quiet' : 'dead-letters-nodes'}>
      <span className="dead-letters-nodes-title number">{title}</span>
      <span className="dead-letters-nodes-list">
        {nodes.slice(0, NODES_SHOWN_MAX).map((node) => (
          <span key={node.nodeId} className="tag">
            <code>{node.nodeId}</code> {node.reason && <span className="faint">{node.reason}</span>}
          </span>
        ))}
        {nodes.length > NODES_SHOWN_MAX && (
          <span className="faint">
            and {(nodes.length - NODES_SHOWN_MAX).toLocaleString()} more
          </span>
        )}
      </span>
    </div>
  );
}
