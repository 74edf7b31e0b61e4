const NODES_SHOWN_MAX = 12;

export function PlanNodes({
  title,
  nodes,
  quiet = false,
}: {
  title: string;
  nodes: { id: string; why: string }[];
  quiet?: boolean;
}) {
  return (
    <div className={quiet ? 'dead-letters-nodes quiet' : 'dead-letters-nodes'}>
      <span className="dead-letters-nodes-title number">{title}</span>
      <span className="dead-letters-nodes-list">
        {nodes.slice(0, NODES_SHOWN_MAX).map((node) => (
          <span key={node.id} className="tag">
            <code>{node.id}</code> {node.why && <span className="faint">{node.why}</span>}
          </span>
        ))}
        {nodes.length > NODES_SHOWN_MAX && (
          <span className="faint">and {(nodes.length - NODES_SHOWN_MAX).toLocaleString()} more</span>
        )}
      </span>
    </div>
  );
}
