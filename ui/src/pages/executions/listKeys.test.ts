import { expect, test } from 'vitest';
import { actionOf, type Focus } from './listKeys';

const press = (key: string, focus: Focus, more = {}) =>
  actionOf(
    { key, ctrlKey: false, metaKey: false, altKey: false, defaultPrevented: false, ...more },
    focus,
  );

test('nothing fires while someone types', () => {
  for (const key of ['j', 'k', '/', '?', ' ', 'x', 'Escape', 'Enter']) {
    expect(press(key, 'typing')).toBe(null);
  }
});

test('nothing fires with a modifier, or when the key was used', () => {
  expect(press('j', 'page', { ctrlKey: true })).toBe(null);
  expect(press('k', 'page', { metaKey: true })).toBe(null);
  expect(press('x', 'page', { altKey: true })).toBe(null);
  expect(press('?', 'page', { defaultPrevented: true })).toBe(null);
});

test('rows are reached from the page', () => {
  expect(press('j', 'page')).toBe('down');
  expect(press('ArrowUp', 'page')).toBe('up');
  expect(press('Enter', 'page')).toBe('open');
  expect(press(' ', 'link')).toBe('select');
  expect(press('a', 'page')).toBe(null);
});

test('the focused element has its own keys', () => {
  expect(press('Enter', 'link')).toBe(null);
  expect(press(' ', 'control')).toBe(null);
  expect(press('ArrowDown', 'control')).toBe(null);
  expect(press('j', 'control')).toBe('down');
  expect(press(' ', 'checkbox')).toBe(null);
  expect(press('ArrowDown', 'checkbox')).toBe('down');
});
