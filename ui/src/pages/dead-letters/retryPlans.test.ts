import { expect, it } from 'vitest';
import type { DeadLetter, RetriedLetters } from '../../api/calls';
import { retryPlans } from './retryPlans';

const letters = [1, 2, 3, 4].map((id) => ({
  id,
  workflow: id === 4 ? 'other' : 'order',
})) as DeadLetter[];
const item = (id: number, more: Partial<RetriedLetters>): RetriedLetters => ({
  retry_of: `e${id}`,
  letters: [id],
  ...more,
});
const runs = [{ node_id: 'pay', reason: 'failed' }];

it('shows what is the same once, with all executions that it concerns', () => {
  const plans = retryPlans(
    [item(1, { runs, keeps: ['a'] }), item(2, { runs, keeps: ['a'] })],
    letters,
  );
  expect(plans).toHaveLength(1);
  expect(plans[0]).toMatchObject({
    workflow: 'order',
    executions: ['e1', 'e2'],
    letters: 2,
    refusal: null,
  });
});

it('separates plans that differ in nodes or workflow', () => {
  const plans = retryPlans(
    [
      item(1, { runs, keeps: ['a'] }),
      item(2, { runs, keeps: [] }),
      item(4, { runs, keeps: ['a'] }),
    ],
    letters,
  );
  expect(plans).toHaveLength(3);
});

it('puts what is refused first', () => {
  const error = {
    type: 't',
    title: 'Conflict',
    status: 409,
    detail: 'it runs already',
    code: 'conflict',
  };
  const plans = retryPlans([item(1, { runs, keeps: [] }), item(2, { error })], letters);
  expect(plans.map((plan) => plan.refusal)).toEqual(['it runs already', null]);
});
