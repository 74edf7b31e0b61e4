import { toast } from '../../components/toasts';
import { executionsText, type Refusal, type Summary } from './bulk';
import { shortId } from './filters';

const IDS_SHOWN = 5;

/** Says how many it was done to, and why not to the others. */
export function tellOutcome(said: string, { done, refused }: Summary): void {
  if (refused.length === 0) {
    toast(`${executionsText(done.length)} ${said}`);
    return;
  }
  const text = (
    <>
      {executionsText(done.length)} {said}.
      <Refusals title={`Not ${said}`} refused={refused} />
    </>
  );
  toast(text, 'failed');
}

export function Refusals({ title, refused }: { title: string; refused: Refusal[] }) {
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
