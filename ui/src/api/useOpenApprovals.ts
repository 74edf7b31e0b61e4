import { useQuery } from '@tanstack/react-query';
import { listApprovals } from './calls';

const REFETCH_MS = 10_000;
const APPROVALS_MAX = 200;

/** The open approvals, those that began first before others. */
export function useOpenApprovals() {
  return useQuery({
    queryKey: ['approvals', 'open'],
    queryFn: () => listApprovals(null, APPROVALS_MAX),
    refetchInterval: REFETCH_MS,
  });
}
