import { TriangleAlert } from 'lucide-react';
import type { QueueRow } from './fleet';

export function QueueTableRow({ row }: { row: QueueRow }) {
  return (
    <>
      <tr>
        <td className="workers-queue">{row.queue}</td>
        <td className={`right number ${row.waiting ? 'workers-waiting' : 'faint'}`}>
          {row.waiting.toLocaleString()}
        </td>
        <td className={`right number ${row.running ? 'workers-running' : 'faint'}`}>
          {row.running.toLocaleString()}
        </td>
        <td className={`right number ${row.served ? '' : 'faint'}`}>
          {row.served.toLocaleString()}
        </td>
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
                  No worker serves {row.queue}. Start one:{' '}
                  <code>penstock worker --queues {row.queue}</code>
                </span>
              )}
            </p>
          </td>
        </tr>
      )}
    </>
  );
}
