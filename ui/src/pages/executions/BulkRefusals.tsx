import { executionsText, type Refusal } from './bulkOutcomes';
import { shortId } from './filters';

const IDS_SHOWN_MAX = 5;

export function BulkRefusals({ title, refused }: { title: string; refused: Refusal[] }) {
  if (!refused.length) return null;
  return (
    <section className="xs-refused">
      <h3>{title}</h3>
      <ul>
        {refused.map(({ reason, ids }) => (
          <li key={reason}>
            {executionsText(ids.length)}: {reason}
            <br />
            <span className="faint" title={ids.join('\n')}>
              {ids.slice(0, IDS_SHOWN_MAX).map(shortId).join(', ')}
              {ids.length > IDS_SHOWN_MAX && ` and ${ids.length - IDS_SHOWN_MAX} more`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
