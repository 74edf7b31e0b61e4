import { useState } from 'react';
import type { Worker } from '../../api/calls';
import { Button, Id, StateIcon, Time } from '../../components/basics';
import { Link, paths } from '../../routing';
import { stateClass } from '../../states';
import { durationText, useNow } from '../../time';
import { secondsNow } from './fleet';

const FEW_QUEUES = 8;
const FEW_TASKS = 8;

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
      <Serves queues={worker.queues} />
      <Tasks worker={worker} readAt={readAt} />
    </li>
  );
}

function Serves({ queues }: { queues: string[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? queues : queues.slice(0, FEW_QUEUES);
  const more = queues.length - shown.length;
  return (
    <div className="workers-queues">
      <span className="faint">Serves</span>
      {shown.map((name) => (
        <span key={name} className="tag">
          {name}
        </span>
      ))}
      {queues.length === 0 && <span className="faint">no queue</span>}
      {more > 0 && <Button kind="quiet" onClick={() => setAll(true)}>{`${more} more`}</Button>}
    </div>
  );
}

function Tasks({ worker, readAt }: { worker: Worker; readAt: number }) {
  const [all, setAll] = useState(false);
  const now = useNow(worker.tasks.length ? 500 : 0);
  if (worker.tasks.length === 0) return null;
  const shown = all ? worker.tasks : worker.tasks.slice(0, FEW_TASKS);
  const more = worker.tasks.length - shown.length;
  const beyond = worker.running - worker.tasks.length;
  return (
    <div className="workers-tasks">
      <ul aria-label={`Tasks of ${worker.worker_id}`}>
        {shown.map((task) => (
          <li key={`${task.execution_id}/${task.node_id}/${task.attempt}`}>
            <span className="workers-task">
              <Link to={paths.execution(task.execution_id, { node: task.node_id })} title={task.execution_id}>
                {task.workflow} › {task.node_id}
              </Link>
              <span className="faint">
                {task.handler}
                {task.attempt > 1 && `, attempt ${task.attempt}`}
              </span>
            </span>
            <span className="number">{durationText(secondsNow(task.seconds, readAt, now))}</span>
          </li>
        ))}
      </ul>
      {more > 0 && <Button kind="quiet" onClick={() => setAll(true)}>{`${more} more`}</Button>}
      {more === 0 && beyond > 0 && <p className="faint">{`and ${beyond.toLocaleString()} more`}</p>}
    </div>
  );
}
