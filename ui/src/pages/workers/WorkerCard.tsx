import type { Worker } from '../../api/calls';
import { Id } from '../../components/Id';
import { StateIcon } from '../../components/StateIcon';
import { Time } from '../../components/Time';
import { stateClass } from '../../states';
import { WorkerQueues } from './WorkerQueues';
import { WorkerTasks } from './WorkerTasks';

export function WorkerCard({ worker, readAt }: { worker: Worker; readAt: number }) {
  return (
    <li className="card workers-worker">
      <header className="workers-head">
        <h2>
          <Id>{worker.worker_id}</Id>
        </h2>
        <span className={`badge ${stateClass(worker.running ? 'RUNNING' : 'PENDING')}`}>
          <StateIcon state={worker.running ? 'RUNNING' : 'PENDING'} size={13} />
          {worker.running ? `runs ${worker.running}` : 'idle'}
        </span>
      </header>
      <p className="faint">
        {worker.started_at && (
          <>
            Started <Time at={worker.started_at} /> ·{' '}
          </>
        )}
        <span className="number">{worker.heartbeats.toLocaleString()}</span>{' '}
        {worker.heartbeats === 1 ? 'heartbeat' : 'heartbeats'}
      </p>
      <WorkerQueues queues={worker.queues} />
      <WorkerTasks worker={worker} readAt={readAt} />
    </li>
  );
}
