// Which letters are ticked. Not in the address: that would be hundreds of numbers, true for a moment only.
export type Chosen = ReadonlySet<number>;

export function withAll(chosen: Chosen, ids: number[], on: boolean): Chosen {
  const next = new Set(chosen);
  for (const id of ids) {
    if (on) next.add(id);
    else next.delete(id);
  }
  return next;
}

/** Only what can still be seen: an action never touches a letter that isn't shown. */
export function stillShown(chosen: Chosen, shown: number[]): number[] {
  return shown.filter((id) => chosen.has(id));
}

export function howMany(chosen: Chosen, ids: number[]): 'none' | 'some' | 'all' {
  const count = ids.filter((id) => chosen.has(id)).length;
  if (count === 0) return 'none';
  return count === ids.length ? 'all' : 'some';
}

/** The server takes so many at once. */
export const MOST_IDS = 1000;

export function portions<T>(all: T[], size = MOST_IDS): T[][] {
  const found: T[][] = [];
  for (let start = 0; start < all.length; start += size) found.push(all.slice(start, start + size));
  return found;
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}
