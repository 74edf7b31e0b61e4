// Requests for many executions at once, and their outcomes.
import type { BulkItem } from '../../api/calls';
import { messageOf } from '../../api/problem';

/** The API's limit for one request. */
export const BULK_IDS_MAX = 500;

/** An item of the API's answer; of a call that failed as a whole, only the error is known. */
export type Outcome = Pick<BulkItem, 'execution_id' | 'ok'> &
  Partial<Pick<BulkItem, 'runs' | 'keeps'>> & { error?: Partial<BulkItem['error']> };

/**
 * Calls with at most 500 ids at a time. An error of one call is the outcome of all executions in
 * it.
 */
export async function inParts(
  ids: string[],
  call: (part: string[]) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let at = 0; at < ids.length; at += BULK_IDS_MAX) {
    const part = ids.slice(at, at + BULK_IDS_MAX);
    try {
      outcomes.push(...(await call(part)));
    } catch (error) {
      if (at === 0) throw error;
      const detail = messageOf(error);
      outcomes.push(
        ...part.map((execution_id) => ({ execution_id, ok: false, error: { detail } })),
      );
    }
  }
  return outcomes;
}

export type Refusal = { reason: string; ids: string[] };
export type Summary = { done: Outcome[]; refused: Refusal[] };

/** The outcomes that succeeded, and the refused ones by reason, the most frequent first. */
export function summaryOf(outcomes: Outcome[]): Summary {
  const reasons = new Map<string, string[]>();
  for (const outcome of outcomes) {
    if (outcome.ok) continue;
    const reason = withoutId(
      outcome.error?.detail ?? outcome.error?.title ?? 'it was refused',
      outcome.execution_id,
    );
    reasons.set(reason, [...(reasons.get(reason) ?? []), outcome.execution_id]);
  }
  const refused = [...reasons].map(([reason, ids]) => ({ reason, ids }));
  return {
    done: outcomes.filter((outcome) => outcome.ok),
    refused: refused.sort((a, b) => b.ids.length - a.ids.length),
  };
}

const ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** The reason without ids, so that the same reason for many executions is one. */
function withoutId(reason: string, executionId: string): string {
  const own = reason
    .replaceAll(` '${executionId}'`, '')
    .replaceAll(` "${executionId}"`, '')
    .replaceAll(` ${executionId}`, '')
    .replaceAll(executionId, 'it');
  return own.replace(ID, 'another');
}

export function executionsText(count: number): string {
  return count === 1 ? '1 execution' : `${count} executions`;
}

export function nodesText(count: number): string {
  return count === 1 ? '1 node' : `${count} nodes`;
}
