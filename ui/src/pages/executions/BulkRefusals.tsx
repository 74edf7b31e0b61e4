import { executionsText, type Refusal } from './bulkOutcomes';
import { shortId } from './filters';

const IDS_SHOWN = 5;

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
              {ids.slice(0, IDS_SHOWN).map(shortId).join(', ')}
              {ids.length > IDS_SHOWN && ` and ${ids.length - IDS_SHOWN} more`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
