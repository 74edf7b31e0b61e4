import { useSyncExternalStore } from 'react';
import { isReachable, onConnection } from './connection';

export function useReachable(): boolean {
  return useSyncExternalStore(onConnection, isReachable);
}
