import { useMemo, useState } from 'react';
import { Card } from '../../components/Card';
import { DiffResult } from '../workflows/diff/DiffResult';
import '../workflows/diff/diff.css';
import { FactTable } from './FactTable';
import { NodePairRow } from './NodePairRow';
import { pairs, sortedText } from './nodePairs';
import type { Compared } from './useCompared';

const ROWS_MAX = 500;

export function Comparison({ left, right }: { left: Compared; right: Compared }) {
  const [onlyDifferent, setOnlyDifferent] = useState(false);
  const all = useMemo(
    () => pairs(left.graph, right.graph, left.outputs, right.outputs),
    [left, right],
  );
  const different = all.filter(
    (pair) => pair.isStateDifferent || pair.isTimeDifferent || pair.isOutputDifferent,
  );
  const shown = (onlyDifferent ? different : all).slice(0, ROWS_MAX);
  return (
    <>
      <Card>
        <FactTable left={left.execution} right={right.execution} />
      </Card>
      <Card
        title={`Nodes: ${different.length} of ${all.length} differ`}
        actions={
          <label className="check">
            <input
              type="checkbox"
              checked={onlyDifferent}
              onChange={(event) => setOnlyDifferent(event.target.checked)}
            />
            Only those that differ
          </label>
        }
      >
        <div className="table-wrap">
          <table className="cmp-nodes">
            <thead>
              <tr>
                <th scope="col">Node</th>
                <th scope="col">State, left</th>
                <th scope="col">State, right</th>
                <th scope="col" className="right">
                  Ran, left
                </th>
                <th scope="col" className="right">
                  Ran, right
                </th>
                <th scope="col">Output</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((pair) => (
                <NodePairRow
                  key={pair.id}
                  pair={pair}
                  leftOutput={left.outputs[pair.id]}
                  rightOutput={right.outputs[pair.id]}
                />
              ))}
            </tbody>
          </table>
        </div>
      </Card>
      <Card title="Input">
        <DiffResult
          before={sortedText(left.execution.input)}
          after={sortedText(right.execution.input)}
          label="The two inputs side by side"
          what="inputs"
        />
      </Card>
      <Card title="Result">
        <DiffResult
          before={sortedText(left.execution.output)}
          after={sortedText(right.execution.output)}
          label="The two results side by side"
          what="results"
        />
      </Card>
    </>
  );
}
