import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { queryString } from '../../routing/queryString';
import { DEFAULT_TIME_RANGE, TIME_RANGES, type TimeRange } from './timeRanges';

export function TimeRangeSwitch({ chosen }: { chosen: TimeRange }) {
  return (
    <nav className="overview-windows" aria-label="Time shown">
      {TIME_RANGES.map((range) => (
        <Link
          key={range.id}
          to={
            paths.overview() +
            queryString({ window: range === DEFAULT_TIME_RANGE ? null : range.id })
          }
          aria-current={range === chosen ? 'true' : undefined}
          title={range.long}
        >
          {range.label}
        </Link>
      ))}
    </nav>
  );
}
