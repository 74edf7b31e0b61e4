import { useQuery } from '@tanstack/react-query';
import { listSignals } from '../../../api/calls';

const LOOK_MS = 3000;

/** The signals of an execution. They may come while nothing else happens. */
export function useSignals(executionId: string, isRunning: boolean) {
  return useQuery({
    queryKey: ['execution', executionId, 'signals'],
    queryFn: () => listSignals(executionId),
    refetchInterval: isRunning ? LOOK_MS : false,
  });
}
