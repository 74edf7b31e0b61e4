import type { ReactNode } from 'react';
import { ErrorBox } from './ErrorBox';
import { Loading } from './Loading';

type Loadable<T> = { data: T | undefined; error: unknown; refetch: () => unknown };

/**
 * Shows a query's data, or that it is loading or has failed. Data stays in sight while it is
 * refetched.
 */
export function Loaded<T>({
  query,
  what,
  children,
}: {
  query: Loadable<T>;
  what?: string;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <ErrorBox error={query.error} retry={() => void query.refetch()} />;
  return <Loading what={what} />;
}
