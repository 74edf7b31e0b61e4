import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { type GraphNode, getItemStates } from '../../../api/calls';
import { nodeHasEnded } from '../../../states';
import { ItemStates } from './itemStates';

const REFETCH_MS = 1000;
/** A slow server isn't asked all the time. */
const PAUSE_FACTOR = 3;

/** The states of a map's items: one request, made again after the stream has said that some changed. */
export function useItemStates(executionId: string, node: GraphNode) {
  const { id, state } = node;
  const fetchMs = useRef(0);
  const query = useQuery({
    queryKey: ['execution', executionId, 'item-states', id, nodeHasEnded(state)],
    queryFn: async () => {
      const began = performance.now();
      const detail = await getItemStates(executionId, id);
      fetchMs.current = performance.now() - began;
      const total = detail.items?.total ?? 0;
      return new ItemStates(id, detail.item_states ?? '', total, detail.handler === 'repeat');
    },
    structuralSharing: false,
    placeholderData: (before) => before,
  });
  const { refetch } = query;
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  // The node is another object after each event of the stream.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the node says that something changed
  useEffect(() => {
    timer.current ??= setTimeout(
      () => {
        timer.current = null;
        void refetch();
      },
      Math.max(REFETCH_MS, fetchMs.current * PAUSE_FACTOR),
    );
  }, [node, refetch]);
  useEffect(
    () => () => {
      if (timer.current) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );
  return query;
}
