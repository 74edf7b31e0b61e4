// Which boxes and lines a graph has, and their positions.
import {
  type Dispatch,
  type SetStateAction,
  useEffect,
  useMemo,
  useState,
  useSyncExternalStore,
} from 'react';
import type { GraphEdge } from '../api/calls';
import {
  type Bundle,
  bundles,
  EDGES_MAX,
  type Group,
  Grouping,
  type Item,
  NODES_MAX,
} from './groups';
import { columns, type Layout, ROWS, routed } from './layout';
import type { NodeStore } from './nodeStore';

type Boxes = {
  items: Item[];
  keyOf: (item: Item) => string;
  membersOf: (group: Group) => string[];
  /** By node: the item that has it. */
  itemOf: ReadonlyMap<string, string>;
  links: Bundle[];
  layout: Layout;
};

export type Drawing = Boxes & {
  store: NodeStore;
  isGrouped: boolean;
  opened: ReadonlySet<string>;
  setOpened: Dispatch<SetStateAction<ReadonlySet<string>>>;
};

export function useDrawing(
  store: NodeStore,
  edges: readonly GraphEdge[],
  selected: string | null,
): Drawing {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const ids = useSyncExternalStore(store.subscribe, () => store.ids);
  const isGrouped = ids.length > NODES_MAX || edges.length > EDGES_MAX;
  const grouping = useMemo(
    () => new Grouping(ids.map((id) => store.get(id)?.level ?? 0)),
    [ids, store],
  );

  // the node in the address is shown, whatever group it is in
  useEffect(() => {
    const index = selected !== null && isGrouped ? ids.indexOf(selected) : -1;
    if (index < 0) return;
    const keys = grouping.groupsAround(index).slice(1);
    setOpened((before) =>
      keys.every((key) => before.has(key)) ? before : new Set([...before, ...keys]),
    );
  }, [selected, isGrouped, grouping, ids]);

  const boxes = useMemo(
    () => boxesOf(store, ids, edges, isGrouped ? grouping : null, opened),
    [store, ids, edges, grouping, opened, isGrouped],
  );
  const routedLayout = useRouted(boxes, !isGrouped);
  return useMemo(() => {
    const links = isGrouped ? visibleLinks(boxes, selected) : boxes.links;
    return {
      ...boxes,
      links,
      layout: routedLayout ?? boxes.layout,
      store,
      isGrouped,
      opened,
      setOpened,
    };
  }, [boxes, routedLayout, store, isGrouped, opened, selected]);
}

function boxesOf(
  store: NodeStore,
  ids: readonly string[],
  edges: readonly GraphEdge[],
  grouping: Grouping | null,
  opened: ReadonlySet<string>,
): Boxes {
  const keyOf = (item: Item) => (item.kind === 'node' ? `n${item.index}` : `g${item.group.key}`);
  const membersOf = (group: Group) =>
    (grouping?.members(group) ?? []).map((index) => ids[index] as string);
  const items: Item[] = grouping
    ? grouping.items(opened)
    : ids.map((id, index) => ({ kind: 'node', index, level: store.get(id)?.level ?? 0 }));
  const itemOf = new Map<string, string>();
  for (const item of items) {
    if (item.kind === 'node') itemOf.set(ids[item.index] as string, keyOf(item));
    else for (const id of membersOf(item.group)) itemOf.set(id, keyOf(item));
  }
  return {
    items,
    keyOf,
    membersOf,
    itemOf,
    links: bundles(edges, itemOf),
    layout: columns(items, keyOf),
  };
}

/**
 * The links without those that nobody could follow: in a crowded graph, only those of the selected
 * node.
 */
function visibleLinks({ links, items, itemOf, keyOf }: Boxes, selected: string | null): Bundle[] {
  const chosen = selected === null ? undefined : itemOf.get(selected);
  const crowd = crowded(items, keyOf);
  const isTooMuch = links.length > EDGES_MAX;
  return links.filter(
    ({ from, to }) =>
      from === chosen || to === chosen || !(isTooMuch || crowd.has(from) || crowd.has(to)),
  );
}

/** The nodes of a column that goes on beside itself. */
function crowded(items: readonly Item[], keyOf: (item: Item) => string): Set<string> {
  const sizes = new Map<number, number>();
  for (const { level } of items) sizes.set(level, (sizes.get(level) ?? 0) + 1);
  return new Set(items.filter(({ level }) => (sizes.get(level) ?? 0) > ROWS).map(keyOf));
}

/** Elk's layout, once it is computed. */
function useRouted(boxes: Boxes, isWanted: boolean): Layout | null {
  const [routedResult, setRoutedResult] = useState<{ of: Boxes; layout: Layout } | null>(null);
  useEffect(() => {
    if (!isWanted) return;
    let current = true;
    routed(boxes.items, boxes.keyOf, boxes.links).then(
      (layout) => current && setRoutedResult({ of: boxes, layout }),
      (error) => console.warn('elk could not lay out the graph: it is shown in columns', error),
    );
    return () => {
      current = false;
    };
  }, [boxes, isWanted]);
  return routedResult?.of === boxes ? routedResult.layout : null;
}
