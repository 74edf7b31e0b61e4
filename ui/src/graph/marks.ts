// What is drawn over the states: the selected node, the critical path, what a retry would run and
// reuse.
import { createContext } from 'react';

export type Marks = {
  selected: string | null;
  /** In the order of the path. */
  critical: ReadonlySet<string>;
  /**
   * By node: why it would run again, or null if its output is reused. Null if no retry is
   * previewed.
   */
  retry: ReadonlyMap<string, string | null> | null;
};

export const MarksContext = createContext<Marks>({
  selected: null,
  critical: new Set(),
  retry: null,
});
