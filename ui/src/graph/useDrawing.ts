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
import { type EdgeCondition, edgeConditions } from './conditions';
import {
  type Bundle,
  bundles,
  EDGES_MAX,
  type Group,
  Grouping,
  type Item,
  NODES_MAX,
} from './groups';
import { columns, type Direction, type Layout, ROWS, routed, routeKey } from './layout';
import type { NodeStore } from './nodeStore';

type Boxes = {
  store: NodeStore;
  ids: readonly string[];
  items: Item[];
  keyOf: (item: Item) => string;
  membersOf: (group: Group) => string[];
  /** By node: the item that has it. */
  itemOf: ReadonlyMap<string, string>;
  links: Bundle[];
  /** By edge, as `routeKey` has it. */
  conditions: ReadonlyMap<string, EdgeCondition>;
};
type Placed = { boxes: Boxes; layout: Layout };

/** A longer wait for elk isn't worth it: the graph is shown in columns, and stays so. */
const LAYOUT_MS_MAX = 2500;

export type Drawing = Boxes & {
  layout: Layout;
  isGrouped: boolean;
  opened: ReadonlySet<string>;
  setOpened: Dispatch<SetStateAction<ReadonlySet<string>>>;
};

/** Null until the boxes have their places: a graph that is shown doesn't jump. */
export function useDrawing(
  store: NodeStore,
  edges: readonly GraphEdge[],
  selected: string | null,
  chooseDirection: (items: readonly Item[]) => Direction,
): Drawing | null {
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
  const placed = usePlaced(boxes, isGrouped, chooseDirection);
  return useMemo(() => {
    if (!placed) return null;
    const links = isGrouped ? visibleLinks(placed.boxes, selected) : placed.boxes.links;
    return { ...placed.boxes, links, layout: placed.layout, isGrouped, opened, setOpened };
  }, [placed, isGrouped, opened, selected]);
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
  const conditionKey = ({ from, to }: GraphEdge) => {
    const ends = { from: itemOf.get(from) ?? '', to: itemOf.get(to) ?? '' };
    return ends.from && ends.to ? routeKey(ends) : null;
  };
  return {
    store,
    ids,
    items,
    keyOf,
    membersOf,
    itemOf,
    links: bundles(edges, itemOf),
    conditions: grouping ? new Map() : edgeConditions(store, edges, conditionKey),
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

/** Boxes with their places. While elk lays out new ones, those from before stay. */
function usePlaced(
  boxes: Boxes,
  isGrouped: boolean,
  chooseDirection: (items: readonly Item[]) => Direction,
): Placed | null {
  const [routedBoxes, setRoutedBoxes] = useState<Placed | null>(null);
  const grouped = useMemo(
    () => (isGrouped ? { boxes, layout: columns(boxes.items, boxes.keyOf) } : null),
    [boxes, isGrouped],
  );
  useEffect(() => {
    if (isGrouped) return;
    const { items, keyOf, links, conditions } = boxes;
    let isWanted = true;
    const place = (layout: Layout) => {
      if (isWanted) setRoutedBoxes({ boxes, layout });
      isWanted = false;
    };
    const placeInColumns = () => place(columns(items, keyOf));
    const timer = setTimeout(placeInColumns, LAYOUT_MS_MAX);
    const labels = new Map([...conditions].map(([key, { short }]) => [key, short]));
    routed(items, keyOf, links, labels, chooseDirection(items)).then(place, (error) => {
      console.warn('elk could not lay out the graph: it is shown in columns', error);
      placeInColumns();
    });
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [boxes, isGrouped, chooseDirection]);
  return grouped ?? routedBoxes;
}
