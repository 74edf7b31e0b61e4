import type { AuditItem } from '../../api/calls';
import { Time } from '../../components/Time';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import './admin.css';

export function AuditRow({ item }: { item: AuditItem }) {
  const detail = Object.entries(item.detail ?? {})
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
  return (
    <tr>
      <td>
        <Time at={item.at} />
      </td>
      <td>{item.key_name || item.key_id || <span className="faint">none</span>}</td>
      <td>
        <code>{item.action}</code>
      </td>
      <td className="admin-long">
        <ObjectLink object={item.object} />
      </td>
      <td className={item.status >= 400 ? 'refused' : ''}>{item.status}</td>
      <td>{item.address}</td>
      <td className="admin-long">{detail}</td>
    </tr>
  );
}

/** Leads to the execution or workflow that was changed. */
function ObjectLink({ object }: { object: string }) {
  const [kind, ...rest] = object.split('/');
  const name = rest.join('/');
  if (name && kind === 'executions') return <Link to={paths.execution(name)}>{object}</Link>;
  if (name && kind === 'workflows') return <Link to={paths.workflow(name)}>{object}</Link>;
  return object;
}
