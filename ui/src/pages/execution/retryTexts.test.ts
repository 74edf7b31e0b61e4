import { expect, it } from 'vitest';
import { hasItems, remarkable, retryRunText } from './retryTexts';

const items = { runs: 13, keeps: 9987, sample: ['each[17]', 'each[20]', 'each[31]', 'each[40]'] };

it('says which items run', () => {
  expect(retryRunText({ reason: 'failed', items: { ...items, decided_again: false } })).toBe(
    '13 of 10,000 items run: each[17], each[20], each[31], …',
  );
  expect(retryRunText({ reason: 'failed', items: { ...items, decided_again: true } })).toBe(
    'its list is made again; 9,987 items are kept by their identity',
  );
  const one = { runs: 1, keeps: 2, sample: ['each[1]'], decided_again: false };
  expect(retryRunText({ reason: 'failed', items: one })).toBe('1 of 3 items run: each[1]');
  const changed = { ...one, new: 2, gone: 1 };
  expect(retryRunText({ reason: 'failed', items: changed })).toBe(
    '1 of 3 items run: each[1]; 2 new, 1 gone',
  );
  const same = { ...one, new: 0, gone: 0 };
  expect(retryRunText({ reason: 'failed', items: same })).toBe('1 of 3 items run: each[1]');
  expect(retryRunText({ reason: 'never ran' })).toBe('never ran');
});

it('names only nodes of which there is more to say', () => {
  const runs = [
    { node_id: 'a', reason: 'failed' },
    { node_id: 'paid', reason: 'waits again for paid (1 kept)' },
    { node_id: 'each', reason: '…', items: { ...items, decided_again: false } },
  ];
  expect(remarkable(runs).map(({ node_id }) => node_id)).toEqual(['paid', 'each']);
  expect(hasItems(runs)).toBe(true);
  expect(hasItems(runs.slice(0, 2))).toBe(false);
});
