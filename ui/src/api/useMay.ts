import type { Scope } from './calls';
import { useSession } from './useSession';

/** Whether to offer what needs this scope. The server checks it again. */
export function useMay(scope: Scope): boolean {
  return useSession().me?.scopes.includes(scope) ?? false;
}
