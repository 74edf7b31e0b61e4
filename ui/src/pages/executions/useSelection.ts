import { useCallback, useMemo, useRef, useState } from 'react';
import type { ListedExecution } from '../../api/calls';

/**
 * Which rows are selected. Rows that have left the list aren't: nobody controls executions that
 * they can't see.
 */
export function useSelection(rows: ListedExecution[]) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(() => new Set());
  const last = useRef<string | null>(null);
  const order = useRef<string[]>([]);
  order.current = rows.map((row) => row.execution_id);
  const selected = useMemo(
    () => rows.filter((row) => chosen.has(row.execution_id)),
    [rows, chosen],
  );
  const ids = useMemo(() => new Set(selected.map((row) => row.execution_id)), [selected]);
  const toggle = useCallback((executionId: string, isRange: boolean) => {
    const from = isRange && last.current ? order.current.indexOf(last.current) : -1;
    const to = order.current.indexOf(executionId);
    last.current = executionId;
    setChosen((now) => {
      const next = new Set(now);
      if (from >= 0 && to >= 0) {
        const range = order.current.slice(Math.min(from, to), Math.max(from, to) + 1);
        for (const between of range) next.add(between);
      } else if (!next.delete(executionId)) {
        next.add(executionId);
      }
      return next;
    });
  }, []);
  const clear = useCallback(() => setChosen(new Set()), []);
  const all = () => setChosen(ids.size === rows.length ? new Set() : new Set(order.current));
  return { ids, selected, toggle, clear, all };
}
