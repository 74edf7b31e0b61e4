import type { Stats } from '../../api/calls';
import { StateShares } from '../../components/StateShares';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { countText, percentText } from './numbers';

export function FailureRateRow({ row, since }: { row: Stats['workflows'][number]; since: string }) {
  const { workflow, total, completed, failed, cancelled, active, failure_rate } = row;
  const executions = (state: string | null) => paths.executions({ workflow, state, since });
  return (
    <tr>
      <td className="overview-name">
        <Link to={paths.workflow(workflow)}>{workflow}</Link>
      </td>
      <td className={`right number ${failed ? 'overview-bad' : 'faint'}`}>
        {completed + failed ? percentText(failure_rate) : '–'}
      </td>
      <td className="overview-wide overview-shares">
        <StateShares
          counts={{ COMPLETED: completed, FAILED: failed, CANCELLED: cancelled, RUNNING: active }}
        />
      </td>
      <td className="right number">
        {failed ? (
          <Link
            to={executions('FAILED')}
            aria-label={`${countText(failed)} failed executions of ${workflow}`}
          >
            {countText(failed)}
          </Link>
        ) : (
          <span className="faint">0</span>
        )}
      </td>
      <td className="right number overview-wide">{countText(completed)}</td>
      <td className="right number">
        <Link to={executions(null)} aria-label={`${countText(total)} executions of ${workflow}`}>
          {countText(total)}
        </Link>
      </td>
    </tr>
  );
}
