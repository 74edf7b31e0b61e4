import { useQuery } from '@tanstack/react-query';
import { Server } from 'lucide-react';
import { listOrchestrators, listQueues, listWorkers } from '../../api/calls';
import { Empty, Loaded, Page, useTitle } from '../../components/basics';
import { Orchestrators } from './Orchestrators';
import { Queues } from './Queues';
import { WorkerCard } from './WorkerCard';
import './workers.css';

/** Tasks come and go without an event of their own; what is shown is at most this old. */
const AGAIN_MS = 2000;

export default function Workers() {
  useTitle('Workers');
  const workers = useQuery({ queryKey: ['workers'], queryFn: listWorkers, refetchInterval: AGAIN_MS });
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
            <ul className="workers-list" aria-label="Workers">
              {items.map((each) => (
                <WorkerCard key={each.worker_id} worker={each} readAt={workers.dataUpdatedAt} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <div className="grid workers-lower">
        <Loaded query={queues}>{({ items }) => <Queues queues={items} workers={workers.data?.items ?? []} />}</Loaded>
        <Loaded query={orchestrators}>{({ items }) => <Orchestrators orchestrators={items} />}</Loaded>
      </div>
    </Page>
  );
}

function NoWorkers() {
  return (
    <section className="card">
      <Empty title="No worker runs" icon={Server}>
        <p>
          Tasks wait until one does. Start one beside the same stores: <code>penstock worker</code>
        </p>
        <p>
          It serves the queues of the handlers that it has; <code>--handlers MODULE</code> gives it yours, and{' '}
          <code>--queues NAME</code> only that queue.
        </p>
      </Empty>
    </section>
  );
}
