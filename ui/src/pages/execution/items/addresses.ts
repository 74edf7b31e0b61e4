// Addresses of nodes inside of items: `each[17].fetch`, `each[3].inner[2].call`, `shout[3]`.

/** A part of the way to an item: a map or a loop, and then the item of it. */
export type Step = { nodeId: string; item: string; index: number };

const INDEX = /\[(\d+)\](?=\.|$)/g;

/** The maps on the way to an address, the outermost first. `isNode` knows the execution's nodes. */
export function stepsTo(address: string, isNode: (id: string) => boolean): Step[] {
  const steps: Step[] = [];
  if (isNode(address)) return steps;
  for (const bracket of address.matchAll(INDEX)) {
    const nodeId = address.slice(0, bracket.index);
    if (steps.length === 0 && !isNode(nodeId)) continue;
    steps.push({ nodeId, item: `${nodeId}${bracket[0]}`, index: Number(bracket[1]) });
  }
  return steps;
}

/** The innermost item that an address is inside of, or is itself; null for a node of the whole. */
export function itemOf(address: string, isNode: (id: string) => boolean): string | null {
  return stepsTo(address, isNode).at(-1)?.item ?? null;
}
