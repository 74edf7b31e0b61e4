import type { ReactNode } from 'react';
import { ErrorBox } from './ErrorBox';
import { Loading } from './Loading';

type Loadable<T> = { data: T | undefined; error: unknown; refetch: () => unknown };

/** What was asked for, or how far that is. What is there stays while it is read again. */
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
