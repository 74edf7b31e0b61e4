import { expect, it } from 'vitest';
import { findInJson } from './findInJson';

it('finds keys and values at any depth, and the way to them', () => {
  const found = findInJson({ user: { name: 'Ada', tags: ['x', 'Adamant'] }, ada: 1, n: 5 }, 'ada');
  expect(found.hits).toEqual(new Set(['$/user/name', '$/user/tags/1', '$/ada']));
  expect(found.paths).toEqual(new Set(['$', '$/user', '$/user/tags']));
  expect(found.count).toBe(3);
});

it('is not stopped by depth', () => {
  let deep: unknown = 'needle';
  for (let n = 0; n < 2000; n += 1) deep = { a: deep };
  expect(findInJson(deep, 'needle').count).toBe(1);
});
