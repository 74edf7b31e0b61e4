import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { getWorkflowGraph, type Workflow } from '../../api/calls';
import { Button } from '../../components/Button';
import { Card } from '../../components/Card';
import { JsonView } from '../../components/JsonView';
import { Loaded } from '../../components/Loaded';
import { WorkflowGraphView } from '../../graph/WorkflowGraphView';
import { useQueryString } from '../../routing/useQueryString';

export function GraphTab({ workflow }: { workflow: Workflow }) {
  const { name, version } = workflow;
  const [query, change] = useQueryString();
  const chosen = query.get('node');
  const graph = useQuery({
    queryKey: ['workflows', 'graph', name, version],
    queryFn: () => getWorkflowGraph(name, String(version)),
    staleTime: Number.POSITIVE_INFINITY, // a version never changes
  });
  const node = chosen === null ? null : nodeOf(workflow.definition, chosen);
  return (
    <Loaded query={graph} what="Drawing">
      {(drawn) => (
        <div className={node ? 'wf-drawing with-node' : 'wf-drawing'}>
          <WorkflowGraphView
            graph={drawn}
            selected={node ? chosen : null}
            onSelect={(nodeId) => change({ node: nodeId }, { replace: true })}
          />
          {node && (
            <Card
              title={chosen}
              actions={
                <Button
                  kind="quiet"
                  icon={X}
                  aria-label="Close the node"
                  onClick={() => change({ node: null }, { replace: true })}
                />
              }
            >
              <JsonView value={node} name={chosen ?? 'node'} search={false} />
            </Card>
          )}
        </div>
      )}
    </Loaded>
  );
}

/** A node as its author wrote it; documents have their nodes in `dag` or at the top. */
function nodeOf(definition: Workflow['definition'], nodeId: string): object | null {
  const dag = definition.dag as { nodes?: unknown } | undefined;
  const nodes = dag?.nodes ?? definition.nodes;
  return (Array.isArray(nodes) ? nodes : []).find((node) => node?.id === nodeId) ?? null;
}
