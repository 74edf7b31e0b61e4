import { useInfiniteQuery } from '@tanstack/react-query';
import { Boxes, Play } from 'lucide-react';
import { useState } from 'react';
import { listWorkflows } from '../../api/calls';
import { useMay } from '../../api/session';
import { Button, Card, Empty, Loaded, Page, Time, useTitle } from '../../components/basics';
import { Link, paths, useQueryString } from '../../routing';
import { TypedInput } from '../executions/TypedInput';
import { LATEST, meaning, names } from './aliases';
import { NoWorkflows } from './NoWorkflows';
import { StartDialog } from './start/StartDialog';
import './workflows.css';

const PAGE = 100;
type Listed = Awaited<ReturnType<typeof listWorkflows>>['items'][number];

export default function Workflows() {
  useTitle('Workflows');
  const [query, change] = useQueryString();
  const text = query.get('text') ?? '';
  const [starting, setStarting] = useState<string | null>(null);
  const found = useInfiniteQuery({
    queryKey: ['workflows', 'list'],
    queryFn: ({ pageParam }) => listWorkflows(pageParam, PAGE),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor ?? null,
  });
  const all = found.data?.pages.flatMap((page) => page.items) ?? [];
  const rows = all.filter((each) => each.name.toLowerCase().includes(text.toLowerCase()));
  return (
    <Page
      title="Workflows"
      actions={
        <TypedInput
          type="search"
          className="wf-find"
          aria-label="Part of a workflow's name"
          placeholder="Find a workflow"
          value={text}
          onSettle={(next) => change({ text: next }, { replace: true })}
        />
      }
    >
      <Card className="wf-list">
        <Loaded query={found}>
          {() =>
            rows.length > 0 ? (
              <WorkflowTable rows={rows} onStart={setStarting} />
            ) : all.length > 0 ? (
              <Empty title={`No workflow has “${text}” in its name`} icon={Boxes}>
                {found.hasNextPage ? (
                  'Not all are loaded yet.'
                ) : (
                  <Button onClick={() => change({ text: null })}>Show all</Button>
                )}
              </Empty>
            ) : (
              <NoWorkflows />
            )
          }
        </Loaded>
      </Card>
      {found.hasNextPage && (
        <p className="wf-foot">
          <Button busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
            Load more
          </Button>
        </p>
      )}
      {starting !== null && <StartDialog name={starting} onClose={() => setStarting(null)} />}
    </Page>
  );
}

function WorkflowTable({ rows, onStart }: { rows: Listed[]; onStart: (name: string) => void }) {
  const maySubmit = useMay('submit');
  return (
    <div className="table-wrap">
      <table className="wf-table">
        <caption className="visually-hidden">Workflows by name</caption>
        <thead>
          <tr>
            <th>Name</th>
            <th className="right">Latest</th>
            <th className="right">Versions</th>
            <th>Aliases</th>
            <th>Updated</th>
            {maySubmit && (
              <th>
                <span className="visually-hidden">Start</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <td className="wf-name">
                <Link to={paths.workflow(row.name)}>{row.name}</Link>
              </td>
              <td className="right number wf-latest">
                <span className="wf-word">version </span>
                {row.latest_version}
              </td>
              <td className="right number wf-count">
                {row.versions}
                <span className="wf-word"> {row.versions === 1 ? 'version' : 'versions'}</span>
              </td>
              <td className="wf-tags">
                {names(row.aliases)
                  .filter((alias) => alias !== LATEST)
                  .map((alias) => (
                    <span key={alias} className="tag wf-alias">
                      {alias} <span className="faint">{meaning(row.aliases[alias] ?? {})}</span>
                    </span>
                  ))}
              </td>
              <td className="wf-updated">
                <Time at={row.updated_at} />
              </td>
              {maySubmit && (
                <td className="right wf-start">
                  <Button icon={Play} aria-label={`Start ${row.name}`} onClick={() => onStart(row.name)}>
                    Start
                  </Button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
