// The time ranges of the overview, and how many buckets each has.
export type TimeRange = {
  id: string;
  label: string;
  long: string;
  seconds: number;
  buckets: number;
};

const HOUR: TimeRange = {
  id: '1h',
  label: '1 h',
  long: 'the last hour',
  seconds: 3600,
  buckets: 60,
};

export const TIME_RANGES: TimeRange[] = [
  { id: '15m', label: '15 min', long: 'the last 15 minutes', seconds: 900, buckets: 60 },
  HOUR,
  { id: '24h', label: '24 h', long: 'the last 24 hours', seconds: 86_400, buckets: 72 },
  { id: '7d', label: '7 d', long: 'the last 7 days', seconds: 604_800, buckets: 84 },
];
export const DEFAULT_TIME_RANGE = HOUR;

export function timeRangeOf(id: string | null): TimeRange {
  return TIME_RANGES.find((range) => range.id === id) ?? DEFAULT_TIME_RANGE;
}

/**
 * When a bucket begins, with as much detail as its width needs: seconds, minutes, or the day too.
 */
export function bucketText(at: string, bucketSeconds: number): string {
  return new Date(at).toLocaleString(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    ...(bucketSeconds < 60 ? { second: '2-digit' } : {}),
    ...(bucketSeconds > 600 ? { weekday: 'short' } : {}),
    ...(bucketSeconds > 3600 ? { day: 'numeric', month: 'short' } : {}),
  });
}
