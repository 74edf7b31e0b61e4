import { Rocket } from 'lucide-react';
import { useMay } from '../../api/useMay';
import { useSession } from '../../api/useSession';
import { Card } from '../../components/Card';
import { CopyButton } from '../../components/CopyButton';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { PREFIX, serviceAddress } from '../../routing/prefix';
import { firstCommand } from './firstCommand';

/** How to start the first execution. */
export function FirstSteps() {
  const { me } = useSession();
  const mayStart = useMay('submit');
  const command = firstCommand(serviceAddress(), !(me?.open ?? true));
  return (
    <Card className="overview-first">
      <Rocket size={30} aria-hidden="true" />
      <h2>Nothing has run here yet</h2>
      {mayStart ? (
        <>
          <p>
            This command stores a workflow of three nodes and starts it. You can watch it here as it
            runs.
          </p>
          <div className="overview-command">
            <pre>{command}</pre>
            <CopyButton text={command} label="Copy the command" />
          </div>
          <p className="faint">
            Or start a stored workflow with a form: <Link to={paths.workflows()}>Workflows</Link>.
            The API is described at <a href={`${PREFIX}/docs`}>{`${PREFIX}/docs`}</a>.
          </p>
        </>
      ) : (
        <p className="faint">
          Your key can view executions but not start them. Stored workflows are at{' '}
          <Link to={paths.workflows()}>Workflows</Link>.
        </p>
      )}
    </Card>
  );
}
