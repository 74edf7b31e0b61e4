import { useQuery } from '@tanstack/react-query';
import { listOrchestrators, listQueues, listWorkers } from '../../api/calls';
import { Loaded } from '../../components/Loaded';
import { Page } from '../../components/Page';
import { useTitle } from '../../components/useTitle';
import { NoWorkers } from './NoWorkers';
import { Orchestrators } from './Orchestrators';
import { Queues } from './Queues';
import { WorkerList } from './WorkerList';
import './workers.css';

/** Tasks start and end without an event of an execution. What is shown is at most this old. */
const AGAIN_MS = 2000;

export default function Workers() {
  useTitle('Workers');
  const workers = useQuery({
    queryKey: ['workers'],
    queryFn: listWorkers,
    refetchInterval: AGAIN_MS,
  });
  const queues = useQuery({ queryKey: ['queues'], queryFn: listQueues, refetchInterval: AGAIN_MS });
  const orchestrators = useQuery({
    queryKey: ['orchestrators'],
    queryFn: listOrchestrators,
    refetchInterval: AGAIN_MS,
  });
  return (
    <Page title="Workers">
      <Loaded query={workers}>
        {({ items }) =>
          items.length === 0 ? (
            <NoWorkers />
          ) : (
            <WorkerList workers={items} readAt={workers.dataUpdatedAt} />
          )
        }
      </Loaded>
      <div className="grid workers-lower">
        <Loaded query={queues}>
          {({ items }) => <Queues queues={items} workers={workers.data?.items ?? []} />}
        </Loaded>
        <Loaded query={orchestrators}>
          {({ items }) => <Orchestrators orchestrators={items} />}
        </Loaded>
      </div>
    </Page>
  );
}
