import { useMemo, useSyncExternalStore } from 'react';
import { BASE, subscribe } from './navigation';

/** The parts of the path behind /ui, decoded: a name may have slashes in it. */
export function usePath(): string[] {
  const path = useSyncExternalStore(subscribe, () => location.pathname);
  return useMemo(
    () => path.slice(BASE.length).split('/').filter(Boolean).map(decodeURIComponent),
    [path],
  );
}
