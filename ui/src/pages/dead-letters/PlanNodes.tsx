const FEW_NODES = 12;

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
    <div className={quiet ? 'letters-nodes quiet' : 'letters-nodes'}>
      <span className="letters-nodes-title number">{title}</span>
      <span className="letters-nodes-list">
        {nodes.slice(0, FEW_NODES).map((each) => (
          <span key={each.id} className="tag">
            <code>{each.id}</code> {each.why && <span className="faint">{each.why}</span>}
          </span>
        ))}
        {nodes.length > FEW_NODES && (
          <span className="faint">and {(nodes.length - FEW_NODES).toLocaleString()} more</span>
        )}
      </span>
    </div>
  );
}
