import { Server } from 'lucide-react';
import { Empty } from '../../components/Empty';

export function NoWorkers() {
  return (
    <section className="card">
      <Empty title="No worker is running" icon={Server}>
        <p>
          Tasks wait until a worker runs. Start one with the same stores:{' '}
          <code>penstock worker</code>
        </p>
        <p>
          A worker serves the queues of its handlers. <code>--handlers MODULE</code> adds your
          handlers; <code>--queues NAME</code> limits the worker to that queue.
        </p>
      </Empty>
    </section>
  );
}
