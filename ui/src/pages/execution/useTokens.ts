import { useQuery } from '@tanstack/react-query';
import { getResults } from '../../api/calls';
import { hasEnded } from '../../states';
import type { Run } from './useRun';

const LLM_HANDLER = /llm/i;
const NODES_MAX = 500;

/** The tokens of language models, which the server adds up, once the execution has ended. */
export function useTokens(run: Run) {
  const { store, execution, state } = run;
  const isWanted =
    hasEnded(state) &&
    store.ids.length <= NODES_MAX &&
    store.all().some((node) => LLM_HANDLER.test(node.handler));
  const results = useQuery({
    queryKey: ['execution', execution.execution_id, 'tokens'],
    queryFn: async () => (await getResults(execution.execution_id)).tokens ?? null,
    enabled: isWanted,
    staleTime: Number.POSITIVE_INFINITY, // the outputs of an execution that has ended stay
  });
  return results.data ?? null;
}
