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
        <Empty title="No orchestrator runs">
          Without one nothing is decided: executions stay as they are. Start one: <code>penstock orchestrator</code>
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
              {orchestrators.map((each) => (
                <tr key={each.name}>
                  <td className="workers-name">
                    <Id>{each.name}</Id>
                  </td>
                  <td className="right number">
                    {rangesText(each.partitions) || <span className="faint">none: it stands by</span>}
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
