import { useState } from 'react';
import { Button } from '../../components/Button';

const QUEUES_SHOWN_MAX = 8;

export function WorkerQueues({ queues }: { queues: string[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? queues : queues.slice(0, QUEUES_SHOWN_MAX);
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
