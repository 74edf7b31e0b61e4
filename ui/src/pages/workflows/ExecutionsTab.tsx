import { useQuery } from '@tanstack/react-query';
import { listExecutions } from '../../api/calls';
import { useLive } from '../../api/useLive';
import { Card } from '../../components/Card';
import { Empty } from '../../components/Empty';
import { Loaded } from '../../components/Loaded';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { ExecutionTable } from '../executions/ExecutionTable';

const LAST = 10;

export function ExecutionsTab({ name, version }: { name: string; version: number }) {
  const live = useLive(['executions']);
  const executions = useQuery({
    queryKey: ['executions', 'of', name, version],
    queryFn: () => listExecutions({ workflow: name, version }, null, LAST),
    refetchInterval: live ? false : 5000,
  });
  return (
    <Card
      title={`Last executions of ${name}@${version}`}
      actions={
        <>
          <Link to={paths.executions({ workflow: name, version: String(version) })}>
            All of version {version}
          </Link>
          <Link to={paths.executions({ workflow: name })}>All versions</Link>
        </>
      }
    >
      <Loaded query={executions}>
        {({ items }) =>
          items.length ? (
            <ExecutionTable
              rows={items}
              caption={`The last ${LAST} executions of ${name}@${version}`}
            />
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
