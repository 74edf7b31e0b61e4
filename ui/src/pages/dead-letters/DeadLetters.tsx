import { useInfiniteQuery } from '@tanstack/react-query';
import { MailCheck } from 'lucide-react';
import { useMemo, useState } from 'react';
import { type DeadLetter, listLetters } from '../../api/calls';
import { useLive } from '../../api/live';
import { useMay } from '../../api/session';
import { Button, Empty, Loaded, Page, useTitle } from '../../components/basics';
import { useQueryString } from '../../routing';
import { DropDialog } from './DropDialog';
import { GroupList } from './GroupList';
import type { LetterActions } from './GroupRow';
import { LetterDialog } from './LetterDialog';
import { LetterFilters } from './LetterFilters';
import { RetryDialog } from './RetryDialog';
import { SelectionBar } from './SelectionBar';
import { type Chosen, stillShown, withAll } from './selection';
import './letters.css';

const PAGE = 200;
const AGAIN_MS = 10_000;
type Doing = { what: 'retry' | 'drop'; letters: DeadLetter[] } | null;

export default function DeadLetters() {
  useTitle('Dead letters');
  const [query, change] = useQueryString();
  const [chosen, setChosen] = useState<Chosen>(new Set());
  const [doing, setDoing] = useState<Doing>(null);
  const mayOperate = useMay('operate');
  const found = useLetters(query);
  const letters = useMemo(() => found.data?.pages.flatMap((page) => page.items) ?? [], [found.data]);
  const open = letters.filter((each) => each.closed === null);
  const picked = stillShown(
    chosen,
    open.map((each) => each.id),
  );
  const begin = (what: 'retry' | 'drop') => (wanted: DeadLetter[]) => {
    change({ letter: null }, { replace: true });
    setDoing({ what, letters: wanted });
  };
  const actions: LetterActions = {
    mayOperate,
    chosen,
    onChoose: (ids, on) => setChosen((now) => withAll(now, ids, on)),
    onRetry: begin('retry'),
    onDrop: begin('drop'),
    onInspect: (letter) => change({ letter: String(letter.id) }),
  };
  const close = () => setDoing(null);
  const finish = () => {
    const done = doing?.letters.map((each) => each.id) ?? [];
    setChosen((now) => withAll(now, done, false));
    setDoing(null);
  };
  const inspected = Number(query.get('letter')) || null;
  return (
    <Page title="Dead letters">
      <LetterFilters
        query={query}
        change={(changes) => change({ ...changes, group: null })}
        workflows={namesOf(letters, 'workflow')}
        handlers={namesOf(letters, 'handler')}
      />
      <Loaded query={found}>
        {() =>
          letters.length ? <GroupList letters={letters} actions={actions} partial={found.hasNextPage} /> : <Nothing />
        }
      </Loaded>
      {found.hasNextPage && (
        <Button className="letters-more" busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
          Load more
        </Button>
      )}
      {mayOperate && picked.length > 0 && (
        <SelectionBar
          letters={open.filter((each) => chosen.has(each.id))}
          actions={actions}
          onClear={() => setChosen(new Set())}
        />
      )}
      {inspected && !doing && (
        <LetterDialog
          id={inspected}
          known={letters.find((each) => each.id === inspected)}
          actions={actions}
          onClose={() => change({ letter: null })}
        />
      )}
      {doing?.what === 'retry' && <RetryDialog letters={doing.letters} onClose={close} onDone={finish} />}
      {doing?.what === 'drop' && <DropDialog letters={doing.letters} onClose={close} onDone={finish} />}
    </Page>
  );
}

function useLetters(query: URLSearchParams) {
  const filters = {
    workflow: query.get('workflow') ?? undefined,
    handler: query.get('handler') ?? undefined,
    closed: query.has('closed') || undefined,
  };
  const found = useInfiniteQuery({
    queryKey: ['letters', filters],
    queryFn: ({ pageParam }) => listLetters(filters, pageParam, PAGE),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    refetchInterval: AGAIN_MS,
  });
  // All pages are read again each time: with many of them, the slow pace has to do.
  const isShort = (found.data?.pages.length ?? 1) < 3;
  useLive(...(isShort ? [['letters']] : []));
  return found;
}

function namesOf(letters: DeadLetter[], name: 'workflow' | 'handler'): string[] {
  return [...new Set(letters.map((each) => each[name]))].sort();
}

function Nothing() {
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
