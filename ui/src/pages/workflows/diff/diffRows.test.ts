import { expect, test } from 'vitest';
import { countChanges, diffRows, type Row, sectionsOf, unified } from './diffRows';

const rowsOf = (left: string[], right: string[]) =>
  diffRows(left.join('\n'), right.join('\n')) as Row[];
const text = (row: Row, side: 'left' | 'right') =>
  row[side]?.parts.map((part) => part.text).join('') ?? null;
const shown = (rows: Row[]) =>
  rows.map((row) => [
    row.kind,
    row.left?.number,
    text(row, 'left'),
    row.right?.number,
    text(row, 'right'),
  ]);

test('a line and its replacement are in one row', () => {
  expect(shown(rowsOf(['a', 'b', 'c', 'd'], ['a', 'B', 'c', 'd', 'e']))).toEqual([
    ['same', 1, 'a', 1, 'a'],
    ['changed', 2, 'b', 2, 'B'],
    ['same', 3, 'c', 3, 'c'],
    ['same', 4, 'd', 4, 'd'],
    ['added', undefined, null, 5, 'e'],
  ]);
});

test('numbers go on on their own side after lines that only one has', () => {
  expect(shown(rowsOf(['a', 'x', 'y', 'b'], ['a', 'b', 'c']))).toEqual([
    ['same', 1, 'a', 1, 'a'],
    ['removed', 2, 'x', undefined, null],
    ['removed', 3, 'y', undefined, null],
    ['same', 4, 'b', 2, 'b'],
    ['added', undefined, null, 3, 'c'],
  ]);
});

test('more lines removed than added, and the other way', () => {
  expect(shown(rowsOf(['1', '2', '3'], ['4'])).map(([kind]) => kind)).toEqual([
    'changed',
    'removed',
    'removed',
  ]);
  expect(shown(rowsOf(['1'], ['4', '5'])).map(([kind]) => kind)).toEqual(['changed', 'added']);
});

test('equal and empty texts', () => {
  expect(countChanges(rowsOf(['a', 'b'], ['a', 'b']))).toEqual({ added: 0, removed: 0 });
  expect(diffRows('', '')).toEqual([]);
  expect(shown(rowsOf([], ['a']))).toEqual([['added', undefined, null, 1, 'a']]);
});

test('what has changed in a line is marked on both sides', () => {
  const [row] = rowsOf(['"seconds": 1,'], ['"seconds": 2,']);
  expect(row?.left?.parts.filter((part) => part.isChanged).map((part) => part.text)).toEqual(['1']);
  expect(row?.right?.parts.filter((part) => part.isChanged).map((part) => part.text)).toEqual([
    '2',
  ]);
});

const many = Array.from({ length: 40 }, (_, n) => `line ${n}`);

test('long stretches without a change are folded', () => {
  const rows = rowsOf(many, many.with(20, 'other'));
  const sections = sectionsOf(rows);
  expect(sections.map((section) => [section.isFolded, section.rows.length])).toEqual([
    [true, 17],
    [false, 3],
    [false, 1],
    [false, 3],
    [true, 16],
  ]);
  expect(sections.flatMap((section) => section.rows)).toEqual(rows);
});

test('short stretches stay open', () => {
  const sections = sectionsOf(
    rowsOf(['a', ...many.slice(0, 8), 'b'], ['A', ...many.slice(0, 8), 'B']),
  );
  expect(sections.some((section) => section.isFolded)).toBe(false);
});

test('in one column removed lines stand above added ones', () => {
  const lines = unified(rowsOf(['a', 'b', 'c', 'd'], ['a', 'B', 'C', 'd']));
  expect(
    lines.map((line) => `${line.sign}${line.parts.map((part) => part.text).join('')}`),
  ).toEqual([' a', '-b', '-c', '+B', '+C', ' d']);
  expect(unified(rowsOf(['a'], []))).toHaveLength(1);
});
