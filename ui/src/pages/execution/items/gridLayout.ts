// Where the squares of a grid are. However many there are, only those in sight are drawn.

export type GridLayout = {
  count: number;
  /** Of a square with the gap behind it. */
  cell: number;
  gap: number;
  columns: number;
  height: number;
};

/** The more squares, the smaller they are. */
const SIZES: readonly [countMax: number, cell: number][] = [
  [150, 25],
  [600, 16],
  [3000, 12],
  [20_000, 9],
];
const SMALLEST = 7;
const GAP_FROM_CELL = 9;

export function gridLayout(count: number, width: number): GridLayout {
  const cell = SIZES.find(([countMax]) => count <= countMax)?.[1] ?? SMALLEST;
  const columns = Math.max(1, Math.floor(width / cell));
  const gap = cell > GAP_FROM_CELL ? 2 : 1;
  return { count, cell, gap, columns, height: Math.ceil(count / columns) * cell };
}

/** The number of the square at a point, or null. */
export function squareAt(layout: GridLayout, x: number, y: number): number | null {
  const column = Math.floor(x / layout.cell);
  if (column < 0 || column >= layout.columns || y < 0) return null;
  const square = Math.floor(y / layout.cell) * layout.columns + column;
  return square < layout.count ? square : null;
}

/** The first and the last square between two heights; the last is less than the first if none is. */
export function squaresBetween(layout: GridLayout, top: number, bottom: number): [number, number] {
  const first = Math.max(0, Math.floor(top / layout.cell)) * layout.columns;
  const last = Math.ceil(bottom / layout.cell) * layout.columns - 1;
  return [first, Math.min(layout.count - 1, last)];
}

/** The square that a key leads to, or null for another key. `rows` are as many as are in sight. */
export function squareByKey(
  layout: GridLayout,
  square: number,
  key: string,
  rows: number,
): number | null {
  const steps: Record<string, number> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: layout.columns,
    ArrowUp: -layout.columns,
    PageDown: layout.columns * rows,
    PageUp: -layout.columns * rows,
    Home: -square,
    End: layout.count - 1 - square,
  };
  const step = steps[key];
  if (step === undefined || layout.count === 0) return null;
  return Math.min(layout.count - 1, Math.max(0, square + step));
}
