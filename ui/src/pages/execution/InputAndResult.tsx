import { Card } from '../../components/Card';
import { JsonView } from '../../components/JsonView';
import { hasEnded } from '../../states';
import type { Run } from './useRun';

export function InputAndResult({ run }: { run: Run }) {
  const { input, output } = run.execution;
  return (
    <div className="grid">
      <Card title="Input">
        <JsonView value={input ?? null} name="input" />
      </Card>
      <Card title="Result">
        {hasEnded(run.state) ? (
          <JsonView value={output ?? null} name="result" />
        ) : (
          <p className="faint">
            There is no result yet. It appears here when the execution has ended.
          </p>
        )}
      </Card>
    </div>
  );
}
