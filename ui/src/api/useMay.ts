import type { Scope } from './calls';
import { useSession } from './useSession';

/** Whether to offer it; the server decides again. */
export function useMay(scope: Scope): boolean {
  return useSession().me?.scopes.includes(scope) ?? false;
}
