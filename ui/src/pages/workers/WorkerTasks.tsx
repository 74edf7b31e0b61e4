import { useState } from 'react';
import type { Worker } from '../../api/calls';
import { Button } from '../../components/Button';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { durationText } from '../../time';
import { useNow } from '../../useNow';
import { secondsNow } from './fleet';

const TASKS_SHOWN_MAX = 8;

export function WorkerTasks({ worker, readAt }: { worker: Worker; readAt: number }) {
  const [all, setAll] = useState(false);
  const now = useNow(worker.tasks.length ? 500 : 0);
  if (worker.tasks.length === 0) return null;
  const shown = all ? worker.tasks : worker.tasks.slice(0, TASKS_SHOWN_MAX);
  const more = worker.tasks.length - shown.length;
  const beyond = worker.running - worker.tasks.length;
  return (
    <div className="workers-tasks">
      <ul aria-label={`Tasks of ${worker.worker_id}`}>
        {shown.map((task) => (
          <li key={`${task.execution_id}/${task.node_id}/${task.attempt}`}>
            <span className="workers-task">
              <Link
                to={paths.execution(task.execution_id, { node: task.node_id })}
                title={task.execution_id}
              >
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
