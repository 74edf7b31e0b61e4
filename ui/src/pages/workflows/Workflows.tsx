import { useInfiniteQuery } from '@tanstack/react-query';
import { Boxes, Plus } from 'lucide-react';
import { useState } from 'react';
import { listWorkflows } from '../../api/calls';
import { Button } from '../../components/Button';
import { Card } from '../../components/Card';
import { DebouncedInput } from '../../components/DebouncedInput';
import { Empty } from '../../components/Empty';
import { Loaded } from '../../components/Loaded';
import { Page } from '../../components/Page';
import { useTitle } from '../../components/useTitle';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { useQueryString } from '../../routing/useQueryString';
import { NoWorkflows } from './NoWorkflows';
import { StartDialog } from './start/StartDialog';
import { WorkflowTable } from './WorkflowTable';
import './workflow-pages.css';

const PAGE = 100;

export default function Workflows() {
  useTitle('Workflows');
  const [query, change] = useQueryString();
  const text = query.get('text') ?? '';
  const [starting, setStarting] = useState<string | null>(null);
  const workflows = useInfiniteQuery({
    queryKey: ['workflows', 'list'],
    queryFn: ({ pageParam }) => listWorkflows(pageParam, PAGE),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor ?? null,
  });
  const all = workflows.data?.pages.flatMap((page) => page.items) ?? [];
  const rows = all.filter((workflow) => workflow.name.toLowerCase().includes(text.toLowerCase()));
  return (
    <Page
      title="Workflows"
      actions={
        <>
          <DebouncedInput
            type="search"
            className="wf-find"
            aria-label="Part of a workflow's name"
            placeholder="Find a workflow"
            value={text}
            onValue={(next) => change({ text: next }, { replace: true })}
          />
          <Link className="button primary" to={paths.newWorkflow()}>
            <Plus size={16} aria-hidden="true" />
            <span>New workflow</span>
          </Link>
        </>
      }
    >
      <Card className="wf-list">
        <Loaded query={workflows}>
          {() => {
            if (rows.length > 0) return <WorkflowTable rows={rows} onStart={setStarting} />;
            if (all.length === 0) return <NoWorkflows />;
            return (
              <Empty title={`No workflow has “${text}” in its name`} icon={Boxes}>
                {workflows.hasNextPage ? (
                  'Not all workflows are loaded yet.'
                ) : (
                  <Button onClick={() => change({ text: null })}>Show all</Button>
                )}
              </Empty>
            );
          }}
        </Loaded>
      </Card>
      {workflows.hasNextPage && (
        <p className="wf-foot">
          <Button
            busy={workflows.isFetchingNextPage}
            onClick={() => void workflows.fetchNextPage()}
          >
            Load more
          </Button>
        </p>
      )}
      {starting !== null && <StartDialog name={starting} onClose={() => setStarting(null)} />}
    </Page>
  );
}
