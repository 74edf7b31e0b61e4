// Which part of a graph is visible.
import type { ReactFlowInstance } from '@xyflow/react';
import { GROUP, type Layout, NODE, type Point } from './layout';

/** The smallest zoom at which the smallest text of a box, of 13 pixels, still has 11. */
export const READABLE = 0.86;
const ZOOM_MAX = 1.1;
const MARGIN = 24;

/**
 * A small graph whole; of a large one the box of interest, or else the beginning, at a size that
 * can be read.
 */
export async function fitGraph(
  flow: ReactFlowInstance,
  positions: Layout['positions'],
  frame: HTMLElement,
  ofInterest: Point | undefined,
): Promise<void> {
  const { left, top, right, bottom } = boundsOf(positions);
  const width = right - left;
  const height = bottom - top;
  const fits = Math.min(
    frame.clientWidth / (width + 2 * MARGIN),
    frame.clientHeight / (height + 2 * MARGIN),
  );
  const zoom = fits >= READABLE ? Math.min(fits, ZOOM_MAX) : READABLE;
  const begin = (start: number, length: number, room: number, center: number | undefined) => {
    const low = MARGIN - start * zoom;
    if ((length + 2 * MARGIN) * zoom <= room + 1) return room / 2 - (start + length / 2) * zoom;
    if (center === undefined) return low;
    const high = room - MARGIN - (start + length) * zoom;
    return Math.min(low, Math.max(high, room / 2 - center * zoom));
  };
  const x = ofInterest && ofInterest.x + NODE.width / 2;
  const y = ofInterest && ofInterest.y + NODE.height / 2;
  await flow.setViewport({
    x: begin(left, width, frame.clientWidth, x),
    y: begin(top, height, frame.clientHeight, y),
    zoom,
  });
}

/** Moves the viewport only if the box is outside of it. */
export function bringIntoView(flow: ReactFlowInstance, position: Point, frame: HTMLElement): void {
  const { x, y, zoom } = flow.getViewport();
  const left = position.x * zoom + x;
  const top = position.y * zoom + y;
  const right = left + NODE.width * zoom;
  const isVisible =
    left > 0 && top > 0 && right < frame.clientWidth && top < frame.clientHeight - 40;
  if (isVisible) return;
  const center = { x: position.x + NODE.width / 2, y: position.y + NODE.height / 2 };
  void flow.setCenter(center.x, center.y, { zoom: Math.max(zoom, READABLE) });
}

function boundsOf(positions: Layout['positions']) {
  const bounds = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const { x, y } of positions.values()) {
    bounds.left = Math.min(bounds.left, x);
    bounds.top = Math.min(bounds.top, y);
    bounds.right = Math.max(bounds.right, x + GROUP.width);
    bounds.bottom = Math.max(bounds.bottom, y + GROUP.height);
  }
  return bounds;
}
