import { describe, expect, it } from 'vitest';
import { countText, failureShare, msText, paceOf, percentText, rateText, sum } from './numbers';
import { bucketText, DEFAULT_TIME_RANGE, TIME_RANGES, timeRangeOf } from './timeRanges';

const none = { PENDING: 0, RUNNING: 0, PAUSED: 0, COMPLETED: 0, FAILED: 0, CANCELLED: 0 };
const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

describe('paceOf', () => {
  it('joins the bucket that is still filling with the one before it', () => {
    const series = [
      { at: at(0), ...none, COMPLETED: 600 },
      { at: at(60), ...none, COMPLETED: 1200 },
      { at: at(120), ...none, RUNNING: 300 },
    ];
    const pace = paceOf({ series, bucket_seconds: 60, now: at(135) });
    expect(pace.unit).toBe('/s');
    expect(pace.now).toBe(20);
    expect(pace.values).toEqual([10, 20, 20]);
    expect(pace.max).toBe(20);
  });

  it('counts by the minute where little happens', () => {
    const series = [
      { at: at(0), ...none, FAILED: 3 },
      { at: at(60), ...none },
      { at: at(120), ...none },
    ];
    const pace = paceOf({ series, bucket_seconds: 60, now: at(120) });
    expect(pace).toEqual({ unit: '/min', values: [3, 0, 0], now: 0, max: 3 });
  });

  it('is nothing without buckets', () => {
    expect(paceOf({ series: [], bucket_seconds: 60, now: at(0) }).now).toBe(0);
  });
});

it('adds up all states', () => {
  expect(sum({ ...none, COMPLETED: 2, FAILED: 1, PENDING: 4 })).toBe(7);
});

it('has a share of failures only if something ended', () => {
  expect(failureShare({ COMPLETED: 0, FAILED: 0 })).toBeNull();
  expect(failureShare({ COMPLETED: 3, FAILED: 1 })).toBe(0.25);
});

describe('texts', () => {
  it('says that a count went no further', () => {
    expect(countText(9, 10)).toBe('9');
    expect(countText(10, 10)).toBe('10+');
  });

  it('never rounds a failure away', () => {
    expect(percentText(0)).toBe('0 %');
    expect(percentText(0.0001)).toBe('< 0.1 %');
    expect(percentText(0.034)).toBe('3.4 %');
    expect(percentText(0.25)).toBe('25 %');
    expect(percentText(1)).toBe('100 %');
    expect(rateText(0.01)).toBe('< 0.1');
    expect(rateText(0)).toBe('0');
  });

  it('says milliseconds and seconds', () => {
    expect(msText(null)).toBe('–');
    expect(msText(0.83)).toBe('0.8 ms');
    expect(msText(1500)).toBe('1.5 s');
  });
});

describe('windows', () => {
  it('falls back to the default', () => {
    expect(timeRangeOf(null)).toBe(DEFAULT_TIME_RANGE);
    expect(timeRangeOf('never')).toBe(DEFAULT_TIME_RANGE);
    expect(timeRangeOf('7d').seconds).toBe(604_800);
  });

  it('cuts into buckets of whole seconds', () => {
    for (const { seconds, buckets } of TIME_RANGES) expect(seconds % buckets).toBe(0);
  });

  it('is as exact as its buckets', () => {
    expect(bucketText(at(7), 15)).toContain('07');
    expect(bucketText(at(7), 7200)).toMatch(/1/);
  });
});
