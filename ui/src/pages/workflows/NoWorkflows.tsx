import { Boxes } from 'lucide-react';
import { CopyButton } from '../../components/CopyButton';
import { Empty } from '../../components/Empty';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { serviceAddress } from '../../routing/prefix';

const DOCUMENT = JSON.stringify({
  name: 'hello',
  nodes: [{ id: 'greet', handler: 'echo', config: { text: 'Hello, {{ input.name }}!' } }],
});

/** How to store the first workflow, with the address of this service. */
export function NoWorkflows() {
  const curl = `curl ${serviceAddress()}/api/v1/workflows -H 'Content-Type: application/json' -d '${DOCUMENT}'`;
  const command = `penstock submit workflow.json --input '{"name": "Ada"}' --url ${serviceAddress()}`;
  return (
    <Empty title="No workflow has been stored yet" icon={Boxes}>
      <div className="wf-how">
        <p>
          <Link to={paths.newWorkflow()}>Write one here</Link>, or store one over HTTP:
        </p>
        <ShellCommand text={curl} />
        <p>or submit one from a file, which also stores it:</p>
        <ShellCommand text={command} />
      </div>
    </Empty>
  );
}

function ShellCommand({ text }: { text: string }) {
  return (
    <div className="wf-command">
      <code>{text}</code>
      <CopyButton text={text} label="Copy the command" />
    </div>
  );
}
