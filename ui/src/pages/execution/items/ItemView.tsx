import { lazy, Suspense, useEffect, useRef } from 'react';
import { ErrorBox } from '../../../components/ErrorBox';
import { Loading } from '../../../components/Loading';
import type { useItemRun } from '../useItemRun';
import type { Run } from '../useRun';
import { ItemTrail } from './ItemTrail';

const GraphView = lazy(() =>
  import('../../../graph/GraphView').then((module) => ({ default: module.GraphView })),
);

type ItemProps = {
  run: Run;
  address: string;
  item: ReturnType<typeof useItemRun>;
  selected: string | null;
  onSelect: (nodeId: string | null) => void;
  onShow: (nodeId: string | null, under: string | null) => void;
};

/** An item of a map, or a round of a loop, as a graph of its own. */
export function ItemView({ run, address, item, selected, onSelect, onShow }: ItemProps) {
  const section = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another item is shown
  useEffect(() => {
    section.current?.scrollIntoView({ block: 'nearest' });
  }, [address]);
  return (
    <section ref={section} className="item-view" aria-label={address}>
      <ItemTrail run={run} address={address} onShow={onShow} />
      {item.error && !item.data ? (
        <ErrorBox error={item.error} retry={() => void item.refetch()} />
      ) : (
        <Suspense fallback={<Loading />}>
          {item.data ? (
            <GraphView
              key={address}
              store={item.data.store}
              edges={item.data.edges}
              selected={selected}
              onSelect={onSelect}
            />
          ) : (
            <Loading what="Loading the item" />
          )}
        </Suspense>
      )}
    </section>
  );
}
