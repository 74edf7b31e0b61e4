// Which part of a graph is visible.
import type { ReactFlowInstance } from '@xyflow/react';
import { GROUP, type Layout, NODE, type Point } from './layout';

const READABLE = 0.6;
const MARGIN = 24;

/** A small graph whole; of a large one the beginning, at a size that can be read. */
export async function showBeginning(
  flow: ReactFlowInstance,
  positions: Layout['positions'],
  frame: HTMLElement,
): Promise<void> {
  const { left, top, right, bottom } = boundsOf(positions);
  const width = right - left;
  const height = bottom - top;
  const fits = Math.min(
    frame.clientWidth / (width + 2 * MARGIN),
    frame.clientHeight / (height + 2 * MARGIN),
  );
  if (fits >= READABLE) {
    await flow.fitView({ padding: 0.06, maxZoom: 1.1 });
    return;
  }
  const zoom = READABLE + 0.1;
  const isTall = height * zoom > frame.clientHeight;
  const y = isTall ? MARGIN - top * zoom : frame.clientHeight / 2 - (top + height / 2) * zoom;
  await flow.setViewport({ x: MARGIN - left * zoom, y, zoom });
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
