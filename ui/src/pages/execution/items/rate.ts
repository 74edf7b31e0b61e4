// How fast the items of a map end, from counts at several moments.

export type Sample = { at: number; ended: number };

/** The rate follows the last half minute. */
const WINDOW_MS = 30_000;
const SHORTEST_MS = 1000;

/** The samples with this one at the end, without those that are too old. */
export function withSample(samples: readonly Sample[], sample: Sample): Sample[] {
  const last = samples.at(-1);
  if (last && sample.ended < last.ended) return [sample];
  const recent = samples.filter(({ at }) => sample.at - at <= WINDOW_MS);
  return [...recent, sample];
}

/** Items per second, or null while that isn't known. */
export function rateOf(samples: readonly Sample[], now: number): number | null {
  const first = samples[0];
  const last = samples.at(-1);
  if (!first || !last || now - first.at < SHORTEST_MS) return null;
  return (last.ended - first.ended) / ((now - first.at) / 1000);
}

/** `312 items/s`, `4 items/min` */
export function rateText(rate: number): string {
  if (rate >= 10) return `${Math.round(rate).toLocaleString('en')} items/s`;
  if (rate >= 1) return `${rate.toFixed(1)} items/s`;
  return `${(rate * 60).toFixed(rate * 60 >= 10 ? 0 : 1)} items/min`;
}
