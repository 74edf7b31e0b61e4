// Steering many executions at once: what would happen, and what did.
import type { BulkItem } from '../../api/calls';
import { messageOf } from '../../api/problem';

/** So many the API takes in one call. */
export const MOST_AT_ONCE = 500;

/** An item of the API's answer; of a call that failed as a whole, only the error is known. */
export type Outcome = Pick<BulkItem, 'execution_id' | 'ok'> &
  Partial<Pick<BulkItem, 'runs' | 'keeps'>> & { error?: Partial<BulkItem['error']> };

/** Call with at most 500 at a time; a call that fails is the outcome of those that were in it. */
export async function inParts(ids: string[], call: (part: string[]) => Promise<Outcome[]>): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let at = 0; at < ids.length; at += MOST_AT_ONCE) {
    const part = ids.slice(at, at + MOST_AT_ONCE);
    try {
      outcomes.push(...(await call(part)));
    } catch (error) {
      if (at === 0) throw error;
      const detail = messageOf(error);
      outcomes.push(...part.map((execution_id) => ({ execution_id, ok: false, error: { detail } })));
    }
  }
  return outcomes;
}

export type Refusal = { reason: string; ids: string[] };
export type Summary = { done: Outcome[]; refused: Refusal[] };

/** Those that worked, and those that didn't by reason, the most frequent first. */
export function summaryOf(outcomes: Outcome[]): Summary {
  const reasons = new Map<string, string[]>();
  for (const each of outcomes) {
    if (each.ok) continue;
    const reason = withoutId(each.error?.detail ?? each.error?.title ?? 'it was refused', each.execution_id);
    reasons.set(reason, [...(reasons.get(reason) ?? []), each.execution_id]);
  }
  const refused = [...reasons].map(([reason, ids]) => ({ reason, ids }));
  return { done: outcomes.filter((each) => each.ok), refused: refused.sort((a, b) => b.ids.length - a.ids.length) };
}

const ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** The same reason for many executions is one reason: ids in it would make it many. */
function withoutId(reason: string, id: string): string {
  const own = reason
    .replaceAll(` '${id}'`, '')
    .replaceAll(` "${id}"`, '')
    .replaceAll(` ${id}`, '')
    .replaceAll(id, 'it');
  return own.replace(ID, 'another');
}

export function executionsText(count: number): string {
  return count === 1 ? '1 execution' : `${count} executions`;
}

export function nodesText(count: number): string {
  return count === 1 ? '1 node' : `${count} nodes`;
}
