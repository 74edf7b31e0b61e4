import { ArrowLeftRight } from 'lucide-react';
import { Button } from '../../components/Button';
import { Empty } from '../../components/Empty';
import { Loaded } from '../../components/Loaded';
import { Page } from '../../components/Page';
import { useTitle } from '../../components/useTitle';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { useQueryString } from '../../routing/useQueryString';
import { Comparison } from './Comparison';
import { useCompared } from './useCompared';
import './compare.css';

/** Two executions side by side; what differs is marked. */
export default function ComparePage() {
  useTitle('Compare executions');
  const [query, change] = useQueryString();
  const leftId = query.get('left') ?? '';
  const rightId = query.get('right') ?? '';
  const left = useCompared(leftId);
  const right = useCompared(rightId);
  if (!leftId || !rightId) {
    return (
      <Page title="Compare executions">
        <Empty title="Choose two executions">
          Select two in the <Link to={paths.executions()}>list of executions</Link>, or choose
          Compare on the page of one.
        </Empty>
      </Page>
    );
  }
  return (
    <Page
      title="Compare executions"
      actions={
        <Button
          icon={ArrowLeftRight}
          onClick={() => change({ left: rightId, right: leftId }, { replace: true })}
        >
          Swap
        </Button>
      }
    >
      <Loaded query={left} what="Loading the executions">
        {(before) => (
          <Loaded query={right} what="Loading the executions">
            {(after) => <Comparison key={`${leftId} ${rightId}`} left={before} right={after} />}
          </Loaded>
        )}
      </Loaded>
    </Page>
  );
}
