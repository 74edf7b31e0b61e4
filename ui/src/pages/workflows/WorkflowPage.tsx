import { useQuery } from '@tanstack/react-query';
import { getWorkflow, listVersions } from '../../api/calls';
import { Problem } from '../../api/problem';
import { Empty } from '../../components/Empty';
import { Loaded } from '../../components/Loaded';
import { useTitle } from '../../components/useTitle';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { useQueryString } from '../../routing/useQueryString';
import { WorkflowView } from './WorkflowView';
import './workflow-pages.css';

export default function WorkflowPage({ name }: { name: string }) {
  useTitle(name);
  const [query] = useQueryString();
  const tag = query.get('version') ?? undefined;
  const workflowQuery = useQuery({
    queryKey: ['workflows', 'one', name, tag],
    queryFn: () => getWorkflow(name, tag),
    // This version stays in sight until the other one is loaded.
    placeholderData: (before) => before,
  });
  const versions = useQuery({
    queryKey: ['workflows', 'versions', name],
    queryFn: () => listVersions(name),
  });
  if (
    workflowQuery.error instanceof Problem &&
    workflowQuery.error.status === 404 &&
    !workflowQuery.isPlaceholderData
  ) {
    return (
      <Empty title={workflowQuery.error.message}>
        {tag ? (
          <Link to={paths.workflow(name)}>Show the latest version of {name}</Link>
        ) : (
          <Link to={paths.workflows()}>Show all workflows</Link>
        )}
      </Empty>
    );
  }
  return (
    <Loaded query={workflowQuery}>
      {(workflow) => <WorkflowView workflow={workflow} versions={versions.data?.items ?? []} />}
    </Loaded>
  );
}
