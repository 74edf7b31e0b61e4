import { useMemo, useState } from 'react';
import type { GraphNode } from '../../../api/calls';
import { Loaded } from '../../../components/Loaded';
import { GoToItem } from './GoToItem';
import { ItemFilter } from './ItemFilter';
import { ItemGrid } from './ItemGrid';
import { ItemProgress } from './ItemProgress';
import type { ItemStates } from './itemStates';
import { useItemStates } from './useItemStates';

type ItemsProps = {
  executionId: string;
  node: GraphNode;
  /** The item whose graph is open. */
  chosen: string | null;
  onChoose: (address: string) => void;
};

/** The items of a map or the rounds of a loop, one square each; a click opens the item's graph. */
export function NodeItems({ executionId, node, chosen, onChoose }: ItemsProps) {
  const states = useItemStates(executionId, node);
  const [filter, setFilter] = useState<ReadonlySet<string>>(new Set());
  return (
    <div className="node-parts">
      {node.items && <ItemProgress node={node} items={node.items} />}
      <Loaded query={states} what="Loading the items">
        {(items) => (
          <FilteredItems
            items={items}
            filter={filter}
            onFilter={setFilter}
            chosen={chosen}
            onChoose={onChoose}
          />
        )}
      </Loaded>
    </div>
  );
}

type FilteredProps = Pick<ItemsProps, 'chosen' | 'onChoose'> & {
  items: ItemStates;
  filter: ReadonlySet<string>;
  onFilter: (filter: ReadonlySet<string>) => void;
};

function FilteredItems({ items, filter, onFilter, chosen, onChoose }: FilteredProps) {
  const positions = useMemo(() => items.positionsIn(filter), [items, filter]);
  const counts = useMemo(() => items.counts(), [items]);
  if (items.count === 0) {
    return <p className="faint">{items.isLoop ? 'No round has begun.' : 'The list is empty.'}</p>;
  }
  return (
    <>
      <ItemFilter counts={counts} chosen={filter} onChange={onFilter} />
      {positions.length === 0 && <p className="faint">None in this state now.</p>}
      <ItemGrid items={items} positions={positions} chosen={chosen} onChoose={onChoose} />
      <GoToItem items={items} onChoose={onChoose} />
    </>
  );
}
