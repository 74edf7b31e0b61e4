// The overview's numbers, computed from what the API counted.
import type { StateCounts, Stats } from '../../api/calls';

/** The order of states in a stacked bar, from the bottom. */
export const STACK = [
  'COMPLETED',
  'FAILED',
  'CANCELLED',
  'PAUSED',
  'RUNNING',
  'PENDING',
] as const satisfies readonly (keyof StateCounts)[];

export function sum(counts: StateCounts): number {
  return STACK.reduce((total, state) => total + counts[state], 0);
}

/** Nothing runs, and nothing was started in the window. */
export function isQuiet(stats: Stats): boolean {
  const { PENDING, RUNNING, PAUSED } = stats.active;
  return sum(stats.totals) + PENDING + RUNNING + PAUSED === 0;
}

/** The server counts no further than the cap. */
export function countText(count: number, cap = Number.POSITIVE_INFINITY): string {
  return `${count.toLocaleString()}${count >= cap ? '+' : ''}`;
}

export function percentText(share: number): string {
  const percent = share * 100;
  if (percent === 0 || percent >= 99.95) return `${Math.round(percent)} %`;
  if (percent < 0.1) return '< 0.1 %';
  return `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

export function failureShare({
  COMPLETED,
  FAILED,
}: {
  COMPLETED: number;
  FAILED: number;
}): number | null {
  return COMPLETED + FAILED ? FAILED / (COMPLETED + FAILED) : null;
}

export type Pace = { unit: '/s' | '/min'; values: number[]; now: number; max: number };

/**
 * Executions started per second, or per minute where that is less than one a second. The last
 * bucket is still filling: together with the one before it, it gives the pace now.
 */
export function paceOf({
  series,
  bucket_seconds,
  now,
}: Pick<Stats, 'series' | 'bucket_seconds' | 'now'>): Pace {
  const perSecond = series.map((bucket) => sum(bucket) / bucket_seconds);
  const last = series.at(-1);
  const before = series.at(-2);
  let current = perSecond.at(-1) ?? 0;
  if (last && before) {
    const filled = Math.min(
      Math.max((Date.parse(now) - Date.parse(last.at)) / 1000, 0),
      bucket_seconds,
    );
    current = (sum(before) + sum(last)) / (bucket_seconds + filled);
    perSecond[perSecond.length - 1] = current;
  }
  const isFast = Math.max(...perSecond, 0) >= 1;
  const values = isFast ? perSecond : perSecond.map((rate) => rate * 60);
  return {
    unit: isFast ? '/s' : '/min',
    values,
    now: isFast ? current : current * 60,
    max: Math.max(...values, 0),
  };
}

export function rateText(rate: number): string {
  if (rate === 0) return '0';
  if (rate < 0.1) return '< 0.1';
  return rate < 100
    ? rate.toLocaleString(undefined, { maximumFractionDigits: 1 })
    : Math.round(rate).toLocaleString();
}

export function msText(ms: number | null): string {
  if (ms === null) return '–';
  if (ms >= 1000) return `${(ms / 1000).toLocaleString(undefined, { maximumFractionDigits: 1 })} s`;
  return `${ms.toLocaleString(undefined, { maximumFractionDigits: ms < 10 ? 1 : 0 })} ms`;
}
