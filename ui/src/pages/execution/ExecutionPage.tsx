import { ErrorBox } from '../../components/ErrorBox';
import { Loading } from '../../components/Loading';
import { Page } from '../../components/Page';
import { useTitle } from '../../components/useTitle';
import { ExecutionView } from './ExecutionView';
import { useRun } from './useRun';
import './execution.css';

export default function ExecutionPage({ executionId }: { executionId: string }) {
  const run = useRun(executionId);
  useTitle(
    run.data ? `${run.data.execution.workflow} ${run.data.state.toLowerCase()}` : 'Execution',
  );
  if (run.data) return <ExecutionView run={run.data} />;
  if (run.error) {
    return (
      <Page title="Execution">
        <ErrorBox error={run.error} retry={() => void run.refetch()} />
      </Page>
    );
  }
  return <Loading what="Loading the execution" />;
}
