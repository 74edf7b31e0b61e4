import { expect, it } from 'vitest';
import { leftText, withLocalTimes } from './time';

it('tells the time that is left in whole seconds', () => {
  expect(leftText(12.1)).toBe('13 s');
  expect(leftText(200)).toBe('3 min 20 s');
  expect(leftText(90_000)).toBe('1 d 1 h');
  expect(leftText(0)).toBe('due now');
  expect(leftText(-5)).toBe('due now');
});

it("puts the times of a text into the viewer's zone", () => {
  const text = withLocalTimes('approved by Ada at 2026-11-19T08:00:00.000Z, as 12-13T14 says');
  expect(text).not.toContain('2026-11-19T');
  expect(text).toContain('approved by Ada at ');
  expect(text).toContain(', as 12-13T14 says');
});
