// What differs between two executions.
import type { Graph, GraphNode, Results } from '../../api/calls';
import { secondsBetween } from '../../time';

export type NodePair = {
  id: string;
  left: GraphNode | undefined;
  right: GraphNode | undefined;
  leftSeconds: number | null;
  rightSeconds: number | null;
  isStateDifferent: boolean;
  isTimeDifferent: boolean;
  /** Null if neither has an output. */
  isOutputDifferent: boolean | null;
};

const SECONDS_MIN = 0.05;
const FACTOR_MIN = 1.2;

/** The nodes of both, in the order of the left one; those that only the right one has come last. */
export function pairs(
  left: Graph,
  right: Graph,
  leftOutputs: Results['outputs'],
  rightOutputs: Results['outputs'],
): NodePair[] {
  const leftById = new Map(left.nodes.map((node) => [node.id, node]));
  const rightById = new Map(right.nodes.map((node) => [node.id, node]));
  const ids = [...new Set([...leftById.keys(), ...rightById.keys()])];
  return ids.map((id) => {
    const leftNode = leftById.get(id);
    const rightNode = rightById.get(id);
    const leftSeconds = secondsBetween(leftNode?.started_at, leftNode?.finished_at);
    const rightSeconds = secondsBetween(rightNode?.started_at, rightNode?.finished_at);
    const hasOutput = id in leftOutputs || id in rightOutputs;
    return {
      id,
      left: leftNode,
      right: rightNode,
      leftSeconds,
      rightSeconds,
      isStateDifferent: leftNode?.state !== rightNode?.state,
      isTimeDifferent: areTimesDifferent(leftSeconds, rightSeconds),
      isOutputDifferent: hasOutput ? !isSame(leftOutputs[id], rightOutputs[id]) : null,
    };
  });
}

/** No two runs take equally long: a difference counts from 50 ms and a fifth on. */
export function areTimesDifferent(left: number | null, right: number | null): boolean {
  if (left === null || right === null) return left !== right;
  const [short, long] = left < right ? [left, right] : [right, left];
  return long - short >= SECONDS_MIN && long >= short * FACTOR_MIN;
}

export function isSame(left: unknown, right: unknown): boolean {
  return sortedText(left) === sortedText(right);
}

/** JSON with its keys in order: the order of keys is no difference. */
export function sortedText(value: unknown): string {
  return JSON.stringify(value ?? null, sorted, 2);
}

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
