import { Server } from 'lucide-react';
import { Empty } from '../../components/Empty';

export function NoWorkers() {
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
