import { useState } from 'react';
import type { Worker } from '../../api/calls';
import { Button } from '../../components/Button';
import { WorkerCard } from './WorkerCard';

/** With hundreds of workers, the queues below must stay within reach. */
const FEW = 12;

export function WorkerList({ workers, readAt }: { workers: Worker[]; readAt: number }) {
  const [all, setAll] = useState(false);
  const shown = all ? workers : workers.slice(0, FEW);
  const more = workers.length - shown.length;
  return (
    <>
      <ul className="workers-list" aria-label="Workers">
        {shown.map((worker) => (
          <WorkerCard key={worker.worker_id} worker={worker} readAt={readAt} />
        ))}
      </ul>
      {more > 0 && (
        <Button
          className="workers-more"
          onClick={() => setAll(true)}
        >{`Show ${more} more workers`}</Button>
      )}
    </>
  );
}
