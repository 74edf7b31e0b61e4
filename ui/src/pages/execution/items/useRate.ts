import { useEffect, useState } from 'react';
import { useNow } from '../../../useNow';
import { rateOf, type Sample, withSample } from './rate';

/** How many items end per second, or null while that isn't known or nothing runs. */
export function useRate(ended: number, isRunning: boolean): number | null {
  const now = useNow(isRunning ? 1000 : 0);
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  useEffect(() => {
    if (isRunning) setSamples((before) => withSample(before, { at: Date.now(), ended }));
  }, [ended, isRunning]);
  return isRunning ? rateOf(samples, now) : null;
}
