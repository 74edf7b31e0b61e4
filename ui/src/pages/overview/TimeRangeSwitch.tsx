import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { queryString } from '../../routing/queryString';
import { DEFAULT_TIME_RANGE, TIME_RANGES, type TimeRange } from './timeRanges';

export function TimeRangeSwitch({ chosen }: { chosen: TimeRange }) {
  return (
    <nav className="overview-windows" aria-label="Time shown">
      {TIME_RANGES.map((each) => (
        <Link
          key={each.id}
          to={paths.overview() + queryString({ window: each === DEFAULT_TIME_RANGE ? null : each.id })}
          aria-current={each === chosen ? 'true' : undefined}
          title={each.long}
        >
          {each.label}
        </Link>
      ))}
    </nav>
  );
}
