import { expect, test } from 'vitest';
import { BULK_IDS_MAX, inParts, summaryOf } from './bulkOutcomes';

const many = Array.from({ length: BULK_IDS_MAX + 1 }, (_, n) => `e${n}`);
const done = (ids: string[]) => ids.map((execution_id) => ({ execution_id, ok: true }));

test('calls with no more than the API takes', async () => {
  const sizes: number[] = [];
  const outcomes = await inParts(many, async (part) => {
    sizes.push(part.length);
    return done(part);
  });
  expect(sizes).toEqual([BULK_IDS_MAX, 1]);
  expect(outcomes).toHaveLength(many.length);
});

test('outcomes before a failure are still reported', async () => {
  let calls = 0;
  const outcomes = await inParts(many, async (part) => {
    calls += 1;
    if (calls === 2) throw new Error('away');
    return done(part);
  });
  const { done: worked, refused } = summaryOf(outcomes);
  expect(worked).toHaveLength(BULK_IDS_MAX);
  expect(refused).toEqual([{ reason: 'away', ids: ['e500'] }]);
});

test('a first call that fails is an error', async () => {
  await expect(inParts(['a'], () => Promise.reject(new Error('away')))).rejects.toThrow('away');
});

test('reasons are counted without the ids in them', () => {
  const refuse = (execution_id: string, detail: string) => ({
    execution_id,
    ok: false,
    error: { detail },
  });
  const { refused } = summaryOf([
    refuse('x1', 'it has no such node'),
    refuse('x2', 'the execution x2 is COMPLETED'),
    refuse('x3', 'the execution x3 is COMPLETED'),
  ]);
  expect(refused).toEqual([
    { reason: 'the execution is COMPLETED', ids: ['x2', 'x3'] },
    { reason: 'it has no such node', ids: ['x1'] },
  ]);
});

test('other ids in a reason make no other reason', () => {
  const retried = (execution_id: string, as: string) => ({
    execution_id,
    ok: false,
    error: { detail: `execution ${execution_id} was retried as ${as}, which is FAILED` },
  });
  const { refused } = summaryOf([
    retried('x1', '01a1e66c-0e6c-7144-a950-26c514c31b70'),
    retried('x2', '01a1e66c-0e74-7c2a-a411-d212926a34f5'),
  ]);
  expect(refused).toEqual([
    { reason: 'execution was retried as another, which is FAILED', ids: ['x1', 'x2'] },
  ]);
});
