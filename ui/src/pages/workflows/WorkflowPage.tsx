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
import './workflows.css';

export default function WorkflowPage({ name }: { name: string }) {
  useTitle(name);
  const [query] = useQueryString();
  const tag = query.get('version') ?? undefined;
  const found = useQuery({
    queryKey: ['workflows', 'one', name, tag],
    queryFn: () => getWorkflow(name, tag),
    placeholderData: (before) => before, // another version takes the place of this one when it is there
  });
  const versions = useQuery({ queryKey: ['workflows', 'versions', name], queryFn: () => listVersions(name) });
  if (found.error instanceof Problem && found.error.status === 404 && !found.isPlaceholderData) {
    return (
      <Empty title={found.error.message}>
        {tag ? (
          <Link to={paths.workflow(name)}>Show the latest version of {name}</Link>
        ) : (
          <Link to={paths.workflows()}>Show all workflows</Link>
        )}
      </Empty>
    );
  }
  return (
    <Loaded query={found}>
      {(workflow) => <WorkflowView workflow={workflow} versions={versions.data?.items ?? []} />}
    </Loaded>
  );
}
