import { useCallback, useMemo, useSyncExternalStore } from 'react';
import { BASE, navigate, subscribe } from './navigation';
import { type Changes, queryString } from './queryString';

/** The query of the address, and how to change a part of it. */
export function useQueryString(): [
  URLSearchParams,
  (changes: Changes, how?: { replace?: boolean }) => void,
] {
  const search = useSyncExternalStore(subscribe, () => location.search);
  const query = useMemo(() => new URLSearchParams(search), [search]);
  const change = useCallback((changes: Changes, how: { replace?: boolean } = {}) => {
    const path = location.pathname.slice(BASE.length);
    navigate(path + queryString(changes, new URLSearchParams(location.search)), how);
  }, []);
  return [query, change];
}
