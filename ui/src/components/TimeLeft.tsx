import { Clock } from 'lucide-react';
import { leftText, localText, utcText } from '../time';
import { useNow } from '../useNow';

/** A clock with the time until a moment; the full time on hover. */
export function TimeLeft({ until }: { until: string | null | undefined }) {
  const now = useNow(until ? 500 : 0);
  if (!until) return null;
  return (
    <time className="time-left" dateTime={until} title={`${localText(until)}\n${utcText(until)}`}>
      <Clock size={13} aria-hidden="true" /> {leftText((Date.parse(until) - now) / 1000)}
    </time>
  );
}
