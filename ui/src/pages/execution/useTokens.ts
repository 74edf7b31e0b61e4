import { useQuery } from '@tanstack/react-query';
import { getResults } from '../../api/calls';
import { hasEnded } from '../../states';
import { type Tokens, tokensIn } from './tokens';
import type { Run } from './useRun';

const LLM_HANDLER = /llm/i;
const NODES_MAX = 500;

/** The tokens of all nodes that report them, once the execution has ended. */
export function useTokens(run: Run): Tokens | null {
  const { store, execution, state } = run;
  const isWanted =
    hasEnded(state) &&
    store.ids.length <= NODES_MAX &&
    store.all().some((node) => LLM_HANDLER.test(node.handler) && node.state === 'COMPLETED');
  const results = useQuery({
    queryKey: ['execution', execution.execution_id, 'tokens'],
    queryFn: async () => tokensIn((await getResults(execution.execution_id)).outputs),
    enabled: isWanted,
    staleTime: Number.POSITIVE_INFINITY, // the outputs of an execution that has ended stay
  });
  return results.data ?? null;
}
