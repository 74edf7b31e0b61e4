import { agoText, localText, utcText } from '../time';
import { useNow } from '../useNow';

/** A time as "3 min ago"; the full time in the viewer's zone and in UTC on hover. */
export function Time({ at, exact = false }: { at: string | null | undefined; exact?: boolean }) {
  const now = useNow(at && !exact ? 10_000 : 0);
  if (!at) return <span className="faint">–</span>;
  return (
    <time dateTime={at} title={`${localText(at)}\n${utcText(at)}`}>
      {exact ? localText(at) : agoText(at, now)}
    </time>
  );
}
