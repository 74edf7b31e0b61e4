import { useQuery } from '@tanstack/react-query';
import { Server } from 'lucide-react';
import { useState } from 'react';
import { listOrchestrators, listQueues, listWorkers, type Worker } from '../../api/calls';
import { Button, Empty, Loaded, Page, useTitle } from '../../components/basics';
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
          items.length === 0 ? <NoWorkers /> : <WorkerList workers={items} readAt={workers.dataUpdatedAt} />
        }
      </Loaded>
      <div className="grid workers-lower">
        <Loaded query={queues}>{({ items }) => <Queues queues={items} workers={workers.data?.items ?? []} />}</Loaded>
        <Loaded query={orchestrators}>{({ items }) => <Orchestrators orchestrators={items} />}</Loaded>
      </div>
    </Page>
  );
}

/** With hundreds of workers, queues must not be far below. */
const FEW = 12;

function WorkerList({ workers, readAt }: { workers: Worker[]; readAt: number }) {
  const [all, setAll] = useState(false);
  const shown = all ? workers : workers.slice(0, FEW);
  const more = workers.length - shown.length;
  return (
    <>
      <ul className="workers-list" aria-label="Workers">
        {shown.map((each) => (
          <WorkerCard key={each.worker_id} worker={each} readAt={readAt} />
        ))}
      </ul>
      {more > 0 && <Button className="workers-more" onClick={() => setAll(true)}>{`Show ${more} more workers`}</Button>}
    </>
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
