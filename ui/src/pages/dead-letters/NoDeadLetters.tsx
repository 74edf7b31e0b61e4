import { MailCheck } from 'lucide-react';
import { Button } from '../../components/Button';
import { Empty } from '../../components/Empty';
import { useQueryString } from '../../routing/useQueryString';

export function NoDeadLetters() {
  const [query, change] = useQueryString();
  const isFiltered = query.has('workflow') || query.has('handler');
  return (
    <section className="card">
      {isFiltered ? (
        <Empty title="No dead letters for these filters">
          <Button onClick={() => change({ workflow: null, handler: null })}>Show all</Button>
        </Empty>
      ) : (
        <Empty title="No dead letters" icon={MailCheck}>
          A node that uses up its attempts leaves one here, with its error and all its attempts. From here it is retried
          or dropped.
        </Empty>
      )}
    </section>
  );
}
