import type { Queue, Worker } from '../../api/calls';
import { Card } from '../../components/Card';
import { Empty } from '../../components/Empty';
import { queueRows } from './fleet';
import { QueueTableRow } from './QueueTableRow';

export function Queues({ queues, workers }: { queues: Queue[]; workers: Worker[] }) {
  const rows = queueRows(queues, workers);
  return (
    <Card title="Queues">
      {rows.length === 0 ? (
        <Empty title="No queues yet">A queue appears with its first task.</Empty>
      ) : (
        <div className="table-wrap">
          <table>
            <thead>
              <tr>
                <th scope="col">Queue</th>
                <th scope="col" className="right">
                  Waiting
                </th>
                <th scope="col" className="right">
                  Running
                </th>
                <th scope="col" className="right">
                  Workers
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <QueueTableRow key={row.queue} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}
