// Which part of the graph is visible: all of it if it can be read, and again when the room changes,
// until the reader moves it.
import type { ReactFlowInstance } from '@xyflow/react';
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from 'react';
import type { NodeStore } from './nodeStore';
import type { Drawing } from './useDrawing';
import { bringIntoView, fitGraph } from './viewport';

type Fitting = {
  flow: ReactFlowInstance | null;
  frame: RefObject<HTMLDivElement | null>;
  drawing: Drawing | null;
  store: NodeStore;
  selected: string | null;
  ofInterest: string | null;
};

/** Returns what to call when the reader has moved the graph. */
export function useFitting(fitting: Fitting): () => void {
  const { flow, frame, drawing, store, selected, ofInterest } = fitting;
  const isMoved = useRef(false);
  const latest = useRef({ flow, drawing, selected, ofInterest });
  latest.current = { flow, drawing, selected, ofInterest };

  const positionOf = (nodeId: string | null) => {
    const { layout, itemOf } = latest.current.drawing ?? {};
    return nodeId === null ? undefined : layout?.positions.get(itemOf?.get(nodeId) ?? '');
  };
  const fitNow = async () => {
    const now = latest.current;
    if (!now.flow || !now.drawing || !frame.current) return;
    const position = positionOf(now.selected) ?? positionOf(now.ofInterest);
    await fitGraph(now.flow, now.drawing.layout.positions, frame.current, position);
  };

  // The graph has the rest of the window's height, whatever stands above it.
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const top = Math.round(element.getBoundingClientRect().top + window.scrollY);
    element.style.setProperty('--graph-top', `${top}px`);
  });

  // Opening a group leaves the viewport where it is; another graph or a new layout is fitted.
  const arranged = drawing?.isGrouped ? store : drawing?.layout;
  // biome-ignore lint/correctness/useExhaustiveDependencies: reads the latest values
  useEffect(() => {
    if (!arranged || !flow) return;
    isMoved.current = false;
    void fitNow();
  }, [flow, arranged]);

  const selectedPosition = positionOf(selected);
  useEffect(() => {
    if (flow && frame.current && selectedPosition) {
      bringIntoView(flow, selectedPosition, frame.current);
    }
  }, [flow, selectedPosition, frame]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: reads the latest values
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (!isMoved.current) void fitNow();
      else if (latest.current.flow) {
        const position = positionOf(latest.current.selected);
        if (position) bringIntoView(latest.current.flow, position, element);
      }
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return useCallback(() => {
    isMoved.current = true;
  }, []);
}
