import { useQuery } from '@tanstack/react-query';
import { getWorkflow } from '../../../api/calls';

export function useDefinition(name: string, version: number) {
  return useQuery({
    queryKey: ['workflows', 'definition', name, version],
    queryFn: async () =>
      JSON.stringify((await getWorkflow(name, String(version))).definition, null, 2),
    staleTime: Number.POSITIVE_INFINITY, // a version never changes
  });
}
