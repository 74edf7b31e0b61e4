import { TriangleAlert } from 'lucide-react';
import type { Queue, Worker } from '../../api/calls';
import { Card, Empty } from '../../components/basics';
import { type QueueRow, queueRows } from './fleet';

export function Queues({ queues, workers }: { queues: Queue[]; workers: Worker[] }) {
  const rows = queueRows(queues, workers);
  return (
    <Card title="Queues">
      {rows.length === 0 ? (
        <Empty title="No queues yet">A queue comes with the first task for it.</Empty>
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
                <Row key={row.queue} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

function Row({ row }: { row: QueueRow }) {
  return (
    <>
      <tr>
        <td className="workers-queue">{row.queue}</td>
        <td className={`right number ${row.waiting ? 'workers-waiting' : 'faint'}`}>{row.waiting.toLocaleString()}</td>
        <td className={`right number ${row.running ? 'workers-running' : 'faint'}`}>{row.running.toLocaleString()}</td>
        <td className={`right number ${row.served ? '' : 'faint'}`}>{row.served.toLocaleString()}</td>
      </tr>
      {row.isStuck && (
        <tr className="workers-stuck">
          <td colSpan={4}>
            <p>
              <TriangleAlert size={14} aria-hidden="true" />
              {row.served > 0 && row.reason_text ? (
                <span>{row.reason_text}</span>
              ) : (
                <span>
                  No worker serves {row.queue}. Start one: <code>penstock worker --queues {row.queue}</code>
                </span>
              )}
            </p>
          </td>
        </tr>
      )}
    </>
  );
}
