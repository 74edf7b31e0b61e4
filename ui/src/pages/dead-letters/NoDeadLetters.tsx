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
        <Empty title="No dead letters match these filters">
          <Button onClick={() => change({ workflow: null, handler: null })}>Show all</Button>
        </Empty>
      ) : (
        <Empty title="No dead letters" icon={MailCheck}>
          When a node has used all its attempts, it leaves a dead letter here, with its error and
          every attempt. You can retry or drop it.
        </Empty>
      )}
    </section>
  );
}
