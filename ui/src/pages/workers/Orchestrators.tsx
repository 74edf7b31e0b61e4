import type { Orchestrator } from '../../api/calls';
import { Card } from '../../components/Card';
import { Empty } from '../../components/Empty';
import { Id } from '../../components/Id';
import { partitionsOwned, rangesText } from './fleet';

export function Orchestrators({ orchestrators }: { orchestrators: Orchestrator[] }) {
  const owned = partitionsOwned(orchestrators);
  return (
    <Card
      title="Orchestrators"
      actions={
        owned > 0 && (
          <span className="faint number">{`${owned} ${owned === 1 ? 'partition' : 'partitions'} owned`}</span>
        )
      }
    >
      {orchestrators.length === 0 ? (
        <Empty title="No orchestrator is running">
          Executions make no progress without one. Start one: <code>penstock orchestrator</code>
        </Empty>
      ) : (
        <div className="table-wrap">
          <table>
            <thead>
              <tr>
                <th scope="col">Orchestrator</th>
                <th scope="col" className="right">
                  Partitions
                </th>
              </tr>
            </thead>
            <tbody>
              {orchestrators.map((orchestrator) => (
                <tr key={orchestrator.name}>
                  <td className="workers-name">
                    <Id>{orchestrator.name}</Id>
                  </td>
                  <td className="right number">
                    {rangesText(orchestrator.partitions) || (
                      <span className="faint">none (standby)</span>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}
