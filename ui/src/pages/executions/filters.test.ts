import { expect, test } from 'vitest';
import {
  countHidden,
  fromLocalField,
  hasFilters,
  labelText,
  readFilters,
  shortId,
  toLocalField,
} from './filters';

const read = (text: string) => readFilters(new URLSearchParams(text));

test('reads what the API would take', () => {
  expect(
    read(
      'state=FAILED&state=RUNNING&workflow=order&version=3&label=team:a&label=b:c:d&text=%20x%20',
    ),
  ).toEqual({
    state: ['FAILED', 'RUNNING'],
    workflow: 'order',
    version: 3,
    label: ['team:a', 'b:c:d'],
    text: 'x',
  });
});

test('leaves out what the API would refuse', () => {
  expect(read('state=DONE&version=-1&label=alone&label=:v&since=tomorrow&text=%20')).toEqual({});
  expect(hasFilters(read('state=DONE'))).toBe(false);
  expect(read('version=1.5')).toEqual({});
});

test('counts the filters that a narrow screen hides', () => {
  expect(countHidden(read('state=FAILED&text=x'))).toBe(0);
  expect(countHidden(read('workflow=a&label=a:1&label=b:2&until=2026-01-01T00:00:00Z'))).toBe(4);
});

test('a moment survives the way through a field', () => {
  const at = '2026-03-04T05:06:00.000Z';
  expect(fromLocalField(toLocalField(at))).toBe(at);
  expect(read('since=2026-03-04T05:06:00Z').since).toBe(at);
  expect(toLocalField(undefined)).toBe('');
  expect(fromLocalField('')).toBe(null);
});

test('labels and ids as text', () => {
  expect(labelText('team', 'a')).toBe('team:a');
  expect(labelText('n', 3)).toBe('n:3');
  expect(shortId('01a1e64e-696c-7bab-8bd5-fe78f792c919')).toBe('f792c919');
  expect(shortId('short')).toBe('short');
});
