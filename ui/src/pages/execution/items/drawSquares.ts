// The squares of a grid on a canvas.
import { type GridLayout, squaresBetween } from './gridLayout';

export type Colours = {
  /** By state. */
  states: ReadonlyMap<string, string>;
  focus: string;
  /** What is behind the squares. */
  ground: string;
};

type Drawn = {
  canvas: HTMLCanvasElement;
  layout: GridLayout;
  /** Of the part of the grid that is in sight. */
  top: number;
  width: number;
  height: number;
  stateOf: (square: number) => string;
  indexOf: (square: number) => number;
  colours: Colours;
  chosen: number | null;
  active: number | null;
};

/** What went well, or hasn't begun, is paler: what needs a look stands out. */
const ALPHAS: Record<string, number> = { PENDING: 0.35, COMPLETED: 0.65, SKIPPED: 0.6 };
/** In a smaller square a cross can't be told from a spot. */
const CROSS_FROM = 9;
/** A smaller square has no room for a number. */
const NUMBER_FROM = 20;
const DIGITS_MAX = 3;

/** Draws the squares in sight. */
export function drawSquares(drawn: Drawn): void {
  const { canvas, layout, top, width, height, stateOf, indexOf, colours } = drawn;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext('2d');
  if (!context) return;
  context.scale(scale, scale);
  const size = layout.cell - layout.gap;
  const [first, last] = squaresBetween(layout, top, top + height);
  for (let square = first; square <= last; square += 1) {
    const state = stateOf(square);
    const x = (square % layout.columns) * layout.cell;
    const y = Math.floor(square / layout.columns) * layout.cell - top;
    const isLarge = size >= NUMBER_FROM;
    context.globalAlpha = isLarge && state !== 'PENDING' ? 1 : (ALPHAS[state] ?? 1);
    context.fillStyle = colours.states.get(state) ?? colours.focus;
    context.fillRect(x, y, size, size);
    context.globalAlpha = 1;
    if (isLarge) drawNumber(context, indexOf(square), x, y, size, drawn);
    else if (state === 'FAILED' && size >= CROSS_FROM) drawCross(context, x, y, size, colours);
    if (isLarge && state === 'FAILED') context.fillRect(x + 3, y + size - 4, size - 6, 2);
  }
  if (drawn.chosen !== null) drawFrame(context, drawn, drawn.chosen, 3);
  if (drawn.active !== null) drawFrame(context, drawn, drawn.active, 2);
}

function drawNumber(
  context: CanvasRenderingContext2D,
  index: number,
  x: number,
  y: number,
  size: number,
  { colours }: Drawn,
): void {
  context.fillStyle = colours.ground;
  const text = String(index);
  if (text.length > DIGITS_MAX) return;
  context.font = '600 11px system-ui, sans-serif';
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText(text, x + size / 2, y + size / 2);
}

/** Failed items are told apart not by their colour alone. */
function drawCross(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  size: number,
  { ground }: Colours,
): void {
  const inset = size * 0.28;
  context.strokeStyle = ground;
  context.lineWidth = Math.max(1, size / 9);
  context.beginPath();
  context.moveTo(x + inset, y + inset);
  context.lineTo(x + size - inset, y + size - inset);
  context.moveTo(x + size - inset, y + inset);
  context.lineTo(x + inset, y + size - inset);
  context.stroke();
}

function drawFrame(
  context: CanvasRenderingContext2D,
  { layout, top, colours }: Drawn,
  square: number,
  width: number,
): void {
  const x = (square % layout.columns) * layout.cell;
  const y = Math.floor(square / layout.columns) * layout.cell - top;
  const size = layout.cell - layout.gap;
  context.strokeStyle = colours.focus;
  context.lineWidth = width;
  context.strokeRect(x + 1, y + 1, size - 2, size - 2);
}

/** The colours of the states where the grid stands: they differ in light and dark. */
export function coloursIn(probes: HTMLElement): Colours {
  const states = new Map<string, string>();
  for (const probe of probes.querySelectorAll<HTMLElement>('[data-state]')) {
    states.set(probe.dataset.state ?? '', getComputedStyle(probe).color);
  }
  const { color: focus, backgroundColor: ground } = getComputedStyle(probes);
  return { states, focus, ground };
}
