import { expect, it } from 'vitest';
import { findInJson } from './findInJson';

it('finds keys and values at any depth, and the way to them', () => {
  const matches = findInJson(
    { user: { name: 'Ada', tags: ['x', 'Adamant'] }, ada: 1, n: 5 },
    'ada',
  );
  expect(matches.hits).toEqual(new Set(['$/user/name', '$/user/tags/1', '$/ada']));
  expect(matches.paths).toEqual(new Set(['$', '$/user', '$/user/tags']));
  expect(matches.count).toBe(3);
});

it('is not stopped by depth', () => {
  let deep: unknown = 'needle';
  for (let n = 0; n < 2000; n += 1) deep = { a: deep };
  expect(findInJson(deep, 'needle').count).toBe(1);
});
