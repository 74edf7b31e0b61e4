import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useEffect } from 'react';
import { getMe } from './api/calls';
import { signedInAs } from './api/session';
import { useSession } from './api/useSession';
import { Empty } from './components/Empty';
import { ErrorBoundary } from './components/ErrorBoundary';
import { ErrorBox } from './components/ErrorBox';
import { Loading } from './components/Loading';
import { Toasts } from './components/Toasts';
import { Login } from './pages/Login';
import { Link } from './routing/Link';
import { paths } from './routing/paths';
import { usePath } from './routing/usePath';
import { Shell } from './shell/Shell';

const Overview = lazy(() => import('./pages/overview/Overview'));
const Executions = lazy(() => import('./pages/executions/Executions'));
const ExecutionPage = lazy(() => import('./pages/execution/ExecutionPage'));
const Workflows = lazy(() => import('./pages/workflows/Workflows'));
const WorkflowPage = lazy(() => import('./pages/workflows/WorkflowPage'));
const EditorPage = lazy(() => import('./pages/editor/EditorPage'));
const DeadLetters = lazy(() => import('./pages/dead-letters/DeadLetters'));
const Approvals = lazy(() => import('./pages/approvals/Approvals'));
const ComparePage = lazy(() => import('./pages/compare/ComparePage'));
const SearchPage = lazy(() => import('./pages/search/SearchPage'));
const ApiKeys = lazy(() => import('./pages/admin/ApiKeys'));
const AuditLog = lazy(() => import('./pages/admin/AuditLog'));
const Workers = lazy(() => import('./pages/workers/Workers'));

export function App() {
  const { key, me, needsKey } = useSession();
  const path = usePath();
  const meQuery = useQuery({
    queryKey: ['me', key],
    queryFn: getMe,
    enabled: !needsKey,
    staleTime: 60_000,
  });
  useEffect(() => {
    if (meQuery.data) signedInAs(meQuery.data);
  }, [meQuery.data]);
  if (needsKey) return <Login />;
  if (!me && meQuery.error) {
    return <ErrorBox error={meQuery.error} retry={() => void meQuery.refetch()} />;
  }
  if (!me) return <Loading />;
  return (
    <Shell>
      <ErrorBoundary key={path.join('/')}>
        <Suspense fallback={<Loading />}>
          <CurrentPage path={path} />
        </Suspense>
      </ErrorBoundary>
      <Toasts />
    </Shell>
  );
}

function CurrentPage({ path: [section, name, ...more] }: { path: string[] }) {
  if (more.length === 0) {
    if (section === undefined) return <Overview />;
    if (section === 'executions') {
      return name ? <ExecutionPage key={name} executionId={name} /> : <Executions />;
    }
    if (section === 'workflows') {
      return name ? <WorkflowPage key={name} name={name} /> : <Workflows />;
    }
    if (section === 'edit') return <EditorPage key={name ?? ''} name={name ?? null} />;
    if (section === 'dead-letters' && !name) return <DeadLetters />;
    if (section === 'approvals' && !name) return <Approvals />;
    if (section === 'workers' && !name) return <Workers />;
    if (section === 'compare' && !name) return <ComparePage />;
    if (section === 'search' && !name) return <SearchPage />;
    if (section === 'api-keys' && !name) return <ApiKeys />;
    if (section === 'audit' && !name) return <AuditLog />;
  }
  return (
    <Empty title="This page doesn't exist">
      <Link to={paths.overview()}>Go to the overview</Link>
    </Empty>
  );
}
