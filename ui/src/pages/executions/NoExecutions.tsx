import { Button } from '../../components/Button';
import { Empty } from '../../components/Empty';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';

export function NoExecutions({
  isFiltered,
  onClear,
}: {
  isFiltered: boolean;
  onClear: () => void;
}) {
  if (isFiltered) {
    return (
      <Empty title="No execution matches these filters">
        <Button onClick={onClear}>Clear filters</Button>
      </Empty>
    );
  }
  return (
    <Empty title="No execution has been started yet">
      Start one from <Link to={paths.workflows()}>a workflow's page</Link>, or with{' '}
      <code>penstock submit NAME --input '{'{}'}'</code>
    </Empty>
  );
}
