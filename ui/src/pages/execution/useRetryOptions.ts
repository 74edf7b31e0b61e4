import type { RetryOptions } from '../../api/calls';
import { useQueryString } from '../../routing/useQueryString';

/** What is to be retried, as the address has it. */
export function useRetryOptions(): RetryOptions & { version: string } {
  const [query] = useQueryString();
  const from = query.get('from');
  const items = query.get('items');
  return {
    ...(from ? { from } : {}),
    ...(items === 'failed' || items === 'all' ? { items } : {}),
    version: query.get('run-version') ?? 'same',
  };
}
