import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { getWorkflowGraph, listExecutions, type Workflow } from '../../api/calls';
import { useLive } from '../../api/live';
import { Button, Card, Empty, Loaded } from '../../components/basics';
import { JsonView } from '../../components/json';
import { WorkflowGraphView } from '../../graph/WorkflowGraphView';
import { Link, paths, useQueryString } from '../../routing';
import { ExecutionTable } from '../executions/ExecutionTable';

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
            onSelect={(id) => change({ node: id }, { replace: true })}
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
function nodeOf(definition: Workflow['definition'], id: string): object | null {
  const dag = definition.dag as { nodes?: unknown } | undefined;
  const nodes = dag?.nodes ?? definition.nodes;
  return (Array.isArray(nodes) ? nodes : []).find((each) => each?.id === id) ?? null;
}

export function DefinitionTab({ workflow }: { workflow: Workflow }) {
  return (
    <Card>
      <JsonView value={workflow.definition} name={`${workflow.name}@${workflow.version}`} />
    </Card>
  );
}

const LAST = 10;

export function ExecutionsTab({ name, version }: { name: string; version: number }) {
  const live = useLive(['executions']);
  const found = useQuery({
    queryKey: ['executions', 'of', name, version],
    queryFn: () => listExecutions({ workflow: name, version }, null, LAST),
    refetchInterval: live ? false : 5000,
  });
  return (
    <Card
      title={`Last executions of ${name}@${version}`}
      actions={
        <>
          <Link to={paths.executions({ workflow: name, version: String(version) })}>All of version {version}</Link>
          <Link to={paths.executions({ workflow: name })}>All versions</Link>
        </>
      }
    >
      <Loaded query={found}>
        {({ items }) =>
          items.length ? (
            <ExecutionTable rows={items} caption={`The last ${LAST} executions of ${name}@${version}`} />
          ) : (
            <Empty title={`${name}@${version} hasn't been started yet`}>
              Press Start, or{' '}
              <code>
                penstock submit {name}@{version}
              </code>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  );
}
