import { durationText } from '../time';
import { useNow } from '../useNow';

/** The duration between two times; it counts up while there is no end. */
export function Elapsed({
  from,
  to,
}: {
  from: string | null | undefined;
  to: string | null | undefined;
}) {
  const now = useNow(from && !to ? 500 : 0);
  if (!from) return <span className="faint">–</span>;
  const end = to ? Date.parse(to) : Math.max(now, Date.parse(from));
  return <span className="number">{durationText((end - Date.parse(from)) / 1000)}</span>;
}
