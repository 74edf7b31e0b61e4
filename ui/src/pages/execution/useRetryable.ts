import { useSyncExternalStore } from 'react';
import { hasEnded } from '../../states';
import type { Run } from './useRun';

const RETRIED_STATES: readonly string[] = ['FAILED', 'CANCELLED'];

/** Whether a retry would run something: something didn't complete, and nobody has retried it yet. */
export function useRetryable({ state, store, execution }: Run): boolean {
  const version = useSyncExternalStore(store.subscribe, () => store.version);
  if (!hasEnded(state) || execution.retried_as) return false;
  if (RETRIED_STATES.includes(state)) return true;
  return version >= 0 && store.all().some((node) => RETRIED_STATES.includes(node.state));
}
