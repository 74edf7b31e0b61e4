// The states of a map's items as the server has them: a text with a letter for each.
const STATE_BY_LETTER: Record<string, string> = {
  P: 'PENDING',
  Q: 'QUEUED',
  R: 'RUNNING',
  T: 'RETRYING',
  W: 'WAITING',
  C: 'COMPLETED',
  F: 'FAILED',
  S: 'SKIPPED',
  X: 'CANCELLED',
};
const PENDING = 'P';

/**
 * The items of a map, or the rounds of a loop. A position is a place among them, from 0; an index is
 * what stands in an address, which for rounds begins at 1.
 */
export class ItemStates {
  /** Also of items that haven't begun. */
  readonly count: number;

  constructor(
    readonly nodeId: string,
    private readonly letters: string,
    total: number,
    readonly isLoop: boolean,
  ) {
    this.count = Math.max(total, letters.length);
  }

  stateAt(position: number): string {
    return STATE_BY_LETTER[this.letters[position] ?? PENDING] ?? 'PENDING';
  }

  hasBegun(position: number): boolean {
    return position < this.letters.length;
  }

  indexAt(position: number): number {
    return this.isLoop ? position + 1 : position;
  }

  positionOf(index: number): number {
    return this.isLoop ? index - 1 : index;
  }

  addressAt(position: number): string {
    return `${this.nodeId}[${this.indexAt(position)}]`;
  }

  counts(): Record<string, number> {
    const byLetter: Record<string, number> = {};
    for (const letter of this.letters) byLetter[letter] = (byLetter[letter] ?? 0) + 1;
    const notBegun = this.count - this.letters.length;
    if (notBegun) byLetter[PENDING] = (byLetter[PENDING] ?? 0) + notBegun;
    return Object.fromEntries(
      Object.entries(byLetter).map(([letter, count]) => [STATE_BY_LETTER[letter], count]),
    );
  }

  /** The positions of items in one of these states, all if there are none; rounds latest first. */
  positionsIn(states: ReadonlySet<string>): number[] {
    const positions: number[] = [];
    for (let position = 0; position < this.count; position += 1) {
      if (states.size === 0 || states.has(this.stateAt(position))) positions.push(position);
    }
    return this.isLoop ? positions.reverse() : positions;
  }
}
