import { useQueryString } from '../../routing/useQueryString';

export function useRetryOptions(): { from?: string; version: string } {
  const [query] = useQueryString();
  const from = query.get('from');
  return { ...(from ? { from } : {}), version: query.get('run-version') ?? 'same' };
}
