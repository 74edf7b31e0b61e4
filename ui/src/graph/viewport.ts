// Which part of a graph is looked at.
import type { ReactFlowInstance } from '@xyflow/react';
import { GROUP, type Layout, NODE, type Point } from './layout';

const READABLE = 0.6;
const MARGIN = 24;

/** A small graph whole; of a large one the beginning, at a size that can be read. */
export async function showBeginning(
  flow: ReactFlowInstance,
  places: Layout['places'],
  frame: HTMLElement,
): Promise<void> {
  const { left, top, right, bottom } = extent(places);
  const [width, height] = [right - left, bottom - top];
  const fits = Math.min(frame.clientWidth / (width + 2 * MARGIN), frame.clientHeight / (height + 2 * MARGIN));
  if (fits >= READABLE) {
    await flow.fitView({ padding: 0.06, maxZoom: 1.1 });
    return;
  }
  const zoom = READABLE + 0.1;
  const isTall = height * zoom > frame.clientHeight;
  const y = isTall ? MARGIN - top * zoom : frame.clientHeight / 2 - (top + height / 2) * zoom;
  await flow.setViewport({ x: MARGIN - left * zoom, y, zoom });
}

/** Moves only if it has to. */
export function bringIntoView(flow: ReactFlowInstance, place: Point, frame: HTMLElement): void {
  const { x, y, zoom } = flow.getViewport();
  const [left, top] = [place.x * zoom + x, place.y * zoom + y];
  const inside = left > 0 && top > 0 && left + NODE.width * zoom < frame.clientWidth && top < frame.clientHeight - 40;
  if (!inside)
    void flow.setCenter(place.x + NODE.width / 2, place.y + NODE.height / 2, { zoom: Math.max(zoom, READABLE) });
}

function extent(places: Layout['places']) {
  const found = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const { x, y } of places.values()) {
    found.left = Math.min(found.left, x);
    found.top = Math.min(found.top, y);
    found.right = Math.max(found.right, x + GROUP.width);
    found.bottom = Math.max(found.bottom, y + GROUP.height);
  }
  return found;
}
