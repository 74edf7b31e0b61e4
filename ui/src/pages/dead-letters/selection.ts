// Which dead letters are selected. The address doesn't have them: they can be hundreds, and change
// quickly.
export type Chosen = ReadonlySet<number>;

export function withAll(chosen: Chosen, ids: number[], on: boolean): Chosen {
  const next = new Set(chosen);
  for (const id of ids) {
    if (on) next.add(id);
    else next.delete(id);
  }
  return next;
}

/**
 * Of the selected ids those that are still shown: an action never changes a dead letter that isn't
 * shown.
 */
export function stillShown(chosen: Chosen, shown: number[]): number[] {
  return shown.filter((id) => chosen.has(id));
}

export function howMany(chosen: Chosen, ids: number[]): 'none' | 'some' | 'all' {
  const count = ids.filter((id) => chosen.has(id)).length;
  if (count === 0) return 'none';
  return count === ids.length ? 'all' : 'some';
}

/** The server's limit for one request. */
export const DEAD_LETTER_IDS_MAX = 1000;

export function portions<T>(all: T[], size = DEAD_LETTER_IDS_MAX): T[][] {
  const parts: T[][] = [];
  for (let start = 0; start < all.length; start += size) parts.push(all.slice(start, start + size));
  return parts;
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}
