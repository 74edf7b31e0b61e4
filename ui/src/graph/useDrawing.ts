// Which boxes and lines there are, and where they stand.
import { type Dispatch, type SetStateAction, useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import type { GraphEdge } from '../api/calls';
import { type Bundle, bundles, type Group, Grouping, type Item, MOST_EDGES, MOST_NODES } from './groups';
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

export function useDrawing(store: NodeStore, edges: readonly GraphEdge[], selected: string | null): Drawing {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const ids = useSyncExternalStore(store.subscribe, () => store.ids);
  const isGrouped = ids.length > MOST_NODES || edges.length > MOST_EDGES;
  const grouping = useMemo(() => new Grouping(ids.map((id) => store.get(id)?.level ?? 0)), [ids, store]);

  // a node that is asked for by the address is brought to light
  useEffect(() => {
    const index = selected !== null && isGrouped ? ids.indexOf(selected) : -1;
    if (index < 0) return;
    const way = grouping.wayTo(index).slice(1);
    setOpened((before) => (way.every((key) => before.has(key)) ? before : new Set([...before, ...way])));
  }, [selected, isGrouped, grouping, ids]);

  const boxes = useMemo(
    () => boxesOf(store, ids, edges, isGrouped ? grouping : null, opened),
    [store, ids, edges, grouping, opened, isGrouped],
  );
  const better = useRouted(boxes, !isGrouped);
  return useMemo(() => {
    const links = isGrouped ? visibleLinks(boxes, selected) : boxes.links;
    return { ...boxes, links, layout: better ?? boxes.layout, store, isGrouped, opened, setOpened };
  }, [boxes, better, store, isGrouped, opened, selected]);
}

function boxesOf(
  store: NodeStore,
  ids: readonly string[],
  edges: readonly GraphEdge[],
  grouping: Grouping | null,
  opened: ReadonlySet<string>,
): Boxes {
  const keyOf = (item: Item) => (item.kind === 'node' ? `n${item.index}` : `g${item.group.key}`);
  const membersOf = (group: Group) => (grouping?.members(group) ?? []).map((index) => ids[index] as string);
  const items: Item[] = grouping
    ? grouping.items(opened)
    : ids.map((id, index) => ({ kind: 'node', index, level: store.get(id)?.level ?? 0 }));
  const itemOf = new Map<string, string>();
  for (const item of items) {
    if (item.kind === 'node') itemOf.set(ids[item.index] as string, keyOf(item));
    else for (const id of membersOf(item.group)) itemOf.set(id, keyOf(item));
  }
  return { items, keyOf, membersOf, itemOf, links: bundles(edges, itemOf), layout: columns(items, keyOf) };
}

/** Without what nobody could follow: of boxes in a crowd, and of too many lines, only those of the chosen node. */
function visibleLinks({ links, items, itemOf, keyOf }: Boxes, selected: string | null): Bundle[] {
  const chosen = selected === null ? undefined : itemOf.get(selected);
  const crowd = crowded(items, keyOf);
  const isTooMuch = links.length > MOST_EDGES;
  return links.filter(
    ({ from, to }) => from === chosen || to === chosen || !(isTooMuch || crowd.has(from) || crowd.has(to)),
  );
}

/** The nodes of a column that goes on beside itself. */
function crowded(items: readonly Item[], keyOf: (item: Item) => string): Set<string> {
  const sizes = new Map<number, number>();
  for (const { level } of items) sizes.set(level, (sizes.get(level) ?? 0) + 1);
  return new Set(items.filter(({ level }) => (sizes.get(level) ?? 0) > ROWS).map(keyOf));
}

/** Elk's layout, as soon as it is there. */
function useRouted(boxes: Boxes, wanted: boolean): Layout | null {
  const [found, setFound] = useState<{ of: Boxes; layout: Layout } | null>(null);
  useEffect(() => {
    if (!wanted) return;
    let current = true;
    routed(boxes.items, boxes.keyOf, boxes.links).then(
      (layout) => current && setFound({ of: boxes, layout }),
      (error) => console.warn('the graph keeps its plain layout', error),
    );
    return () => {
      current = false;
    };
  }, [boxes, wanted]);
  return found?.of === boxes ? found.layout : null;
}
