// What is drawn over the states: the chosen node, the critical path, what a retry would run and keep.
import { createContext } from 'react';

export type Marks = {
  selected: string | null;
  /** In the order of the path. */
  critical: ReadonlySet<string>;
  /** By node: why it would run again; null where it is kept. Nothing if no retry is looked at. */
  retry: ReadonlyMap<string, string | null> | null;
};

export const MarksContext = createContext<Marks>({ selected: null, critical: new Set(), retry: null });
