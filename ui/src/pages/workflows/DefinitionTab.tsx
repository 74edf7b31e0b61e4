import type { Workflow } from '../../api/calls';
import { Card } from '../../components/Card';
import { JsonView } from '../../components/JsonView';

export function DefinitionTab({ workflow }: { workflow: Workflow }) {
  return (
    <Card>
      <JsonView value={workflow.definition} name={`${workflow.name}@${workflow.version}`} />
    </Card>
  );
}
