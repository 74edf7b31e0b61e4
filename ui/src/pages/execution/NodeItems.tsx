import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { listNodes } from '../../api/calls';
import { Button } from '../../components/Button';
import { Loaded } from '../../components/Loaded';
import { StateBadge } from '../../components/StateBadge';
import { stateClass } from '../../states';
import { type Item, itemsOf } from './items';

const LOOK_MS = 1500;

/** The items of a map or the rounds of a loop, one square each; below, the nodes of the chosen one. */
export function NodeItems({
  executionId,
  nodeId,
  ended,
}: {
  executionId: string;
  nodeId: string;
  ended: boolean;
}) {
  const [onlyFailed, setOnlyFailed] = useState(false);
  const [chosen, setChosen] = useState<string | null>(null);
  const inside = useInside(executionId, nodeId, onlyFailed ? 'FAILED' : undefined, ended);
  return (
    <div className="node-parts">
      <label className="item-filter">
        <input
          type="checkbox"
          checked={onlyFailed}
          onChange={(event) => setOnlyFailed(event.target.checked)}
        />{' '}
        Only failed
      </label>
      <Loaded query={inside} what="Loading the items">
        {(data) => (
          <ItemGrid
            items={itemsOf(
              nodeId,
              data.pages.flatMap((page) => page.items),
            )}
            chosen={chosen}
            onChoose={setChosen}
          />
        )}
      </Loaded>
      {inside.hasNextPage && <Button onClick={() => void inside.fetchNextPage()}>Show more</Button>}
      {chosen && <ItemNodes executionId={executionId} item={chosen} ended={ended} />}
    </div>
  );
}

function useInside(executionId: string, under: string, state: string | undefined, ended: boolean) {
  return useInfiniteQuery({
    queryKey: ['execution', executionId, 'inside', under, state ?? '', ended],
    queryFn: ({ pageParam }) => listNodes(executionId, under, state, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ended ? false : LOOK_MS,
  });
}

function ItemGrid({
  items,
  chosen,
  onChoose,
}: {
  items: readonly Item[];
  chosen: string | null;
  onChoose: (id: string) => void;
}) {
  if (items.length === 0) return <p className="faint">None</p>;
  return (
    <div className="item-grid">
      {items.map((item) => (
        <button
          key={item.id}
          type="button"
          className={`item-square ${stateClass(item.state)}${item.id === chosen ? ' chosen' : ''}`}
          title={`${item.id} · ${item.state}`}
          aria-label={`${item.id} ${item.state}`}
          onClick={() => onChoose(item.id)}
        />
      ))}
    </div>
  );
}

function ItemNodes({
  executionId,
  item,
  ended,
}: {
  executionId: string;
  item: string;
  ended: boolean;
}) {
  const inside = useInside(executionId, item, undefined, ended);
  return (
    <section aria-label={item}>
      <h3>{item}</h3>
      <Loaded query={inside} what="Loading the item">
        {(data) => (
          <ul className="item-nodes">
            {data.pages
              .flatMap((page) => page.items)
              .map((node) => (
                <li key={node.node_id}>
                  <StateBadge state={node.state} /> {node.node_id}
                  {node.error && <span className="faint"> {node.error.message}</span>}
                </li>
              ))}
          </ul>
        )}
      </Loaded>
    </section>
  );
}
