import { type KeyboardEvent, type MouseEvent, useId, useRef, useState } from 'react';
import { NODE_ORDER, stateClass } from '../../../states';
import { coloursIn, drawSquares } from './drawSquares';
import { gridLayout, squareAt, squareByKey } from './gridLayout';
import type { ItemStates } from './itemStates';
import { useRedraw } from './useRedraw';
import { useSize } from './useSize';

type GridProps = {
  items: ItemStates;
  /** Those that are shown, in their order. */
  positions: readonly number[];
  chosen: string | null;
  onChoose: (address: string) => void;
};

/**
 * One square for each item, on a canvas: 10,000 elements would be too many. For the keyboard and for
 * screen readers it is a list box of which the active option is an element.
 */
export function ItemGrid({ items, positions, chosen, onChoose }: GridProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const probes = useRef<HTMLSpanElement>(null);
  const optionId = useId();
  const size = useSize(scroll);
  const [active, setActive] = useState(0);
  const [isFocused, setFocused] = useState(false);
  const [hovered, setHovered] = useState<number | null>(null);
  const layout = gridLayout(positions.length, size.width);
  const current = Math.min(active, positions.length - 1);

  const redraw = useRedraw(() => {
    if (!scroll.current || !canvas.current || !probes.current || !size.width) return;
    const chosenSquare = positions.findIndex((position) => items.addressAt(position) === chosen);
    drawSquares({
      canvas: canvas.current,
      layout,
      top: scroll.current.scrollTop,
      width: size.width,
      height: size.height,
      stateOf: (square) => items.stateAt(positions[square] ?? 0),
      indexOf: (square) => items.indexAt(positions[square] ?? 0),
      colours: coloursIn(probes.current),
      chosen: chosenSquare < 0 ? null : chosenSquare,
      active: isFocused ? current : hovered,
    });
  });

  const moveTo = (square: number) => {
    setActive(square);
    const top = Math.floor(square / layout.columns) * layout.cell;
    const view = scroll.current;
    if (!view) return;
    if (top < view.scrollTop) view.scrollTop = top;
    const bottom = top + layout.cell;
    if (bottom > view.scrollTop + view.clientHeight) view.scrollTop = bottom - view.clientHeight;
  };
  const open = (square: number) => {
    const position = positions[square];
    if (position !== undefined && items.hasBegun(position)) onChoose(items.addressAt(position));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      open(current);
      return;
    }
    const rows = Math.max(1, Math.floor(size.height / layout.cell) - 1);
    const square = squareByKey(layout, current, event.key, rows);
    if (square === null) return;
    event.preventDefault();
    moveTo(square);
  };
  const squareOf = (event: MouseEvent) => {
    const view = scroll.current;
    if (!view) return null;
    const box = view.getBoundingClientRect();
    return squareAt(layout, event.clientX - box.left, event.clientY - box.top + view.scrollTop);
  };
  const named = hovered ?? (isFocused ? current : null);
  return (
    <div className="item-grid">
      <div
        ref={scroll}
        className="item-grid-scroll"
        role="listbox"
        tabIndex={0}
        aria-label={`${items.isLoop ? 'Rounds' : 'Items'} of ${items.nodeId}`}
        aria-activedescendant={positions.length ? optionId : undefined}
        onKeyDown={onKeyDown}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        onScroll={() => {
          setHovered(null); // another square is under the pointer
          redraw();
        }}
        onMouseMove={(event) => setHovered(squareOf(event))}
        onMouseLeave={() => setHovered(null)}
        onClick={(event) => {
          const square = squareOf(event);
          if (square === null) return;
          setActive(square);
          open(square);
        }}
      >
        <div className="item-grid-space" style={{ height: layout.height }}>
          <canvas ref={canvas} style={{ width: size.width, height: size.height }} />
        </div>
        {positions.length > 0 && (
          // biome-ignore lint/a11y/useFocusableInteractive: the list box has the focus
          <span
            id={optionId}
            className="visually-hidden"
            role="option"
            aria-selected={addressOf(items, positions, current) === chosen}
            aria-posinset={current + 1}
            aria-setsize={positions.length}
          >
            {nameOf(items, positions, current)}
          </span>
        )}
        <span ref={probes} className="item-grid-probes" aria-hidden="true">
          {NODE_ORDER.map((state) => (
            <span key={state} data-state={state} className={stateClass(state)} />
          ))}
        </span>
      </div>
      <p className="faint item-grid-name" aria-hidden="true">
        {named === null
          ? `Click a square to open ${items.isLoop ? 'the round' : 'the item'}`
          : nameOf(items, positions, named)}
      </p>
    </div>
  );
}

function addressOf(items: ItemStates, positions: readonly number[], square: number): string {
  return items.addressAt(positions[square] ?? 0);
}

function nameOf(items: ItemStates, positions: readonly number[], square: number): string {
  const position = positions[square];
  if (position === undefined) return '';
  const state = items.hasBegun(position) ? items.stateAt(position) : "hasn't begun";
  return `${items.addressAt(position)} · ${state}`;
}
