import { useMemo, useState } from 'react';
import type { DeadLetter } from '../../api/calls';
import { useMay } from '../../api/useMay';
import { Button } from '../../components/Button';
import { Loaded } from '../../components/Loaded';
import { Page } from '../../components/Page';
import { useTitle } from '../../components/useTitle';
import { useQueryString } from '../../routing/useQueryString';
import type { DeadLetterActions } from './actions';
import { DeadLetterDialog } from './DeadLetterDialog';
import { DeadLetterFilters } from './DeadLetterFilters';
import { DeadLetterGroups } from './DeadLetterGroups';
import { DropDeadLettersDialog } from './DropDeadLettersDialog';
import { NoDeadLetters } from './NoDeadLetters';
import { RetryDeadLettersDialog } from './RetryDeadLettersDialog';
import { SelectionBar } from './SelectionBar';
import { type Chosen, stillShown, withAll } from './selection';
import { useDeadLetters } from './useDeadLetters';
import './letters.css';

type Doing = { what: 'retry' | 'drop'; letters: DeadLetter[] } | null;

export default function DeadLetters() {
  useTitle('Dead letters');
  const [query, change] = useQueryString();
  const [chosen, setChosen] = useState<Chosen>(new Set());
  const [doing, setDoing] = useState<Doing>(null);
  const mayOperate = useMay('operate');
  const found = useDeadLetters(query);
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
  const actions: DeadLetterActions = {
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
      <DeadLetterFilters
        query={query}
        change={(changes) => change({ ...changes, group: null })}
        workflows={namesOf(letters, 'workflow')}
        handlers={namesOf(letters, 'handler')}
      />
      <Loaded query={found}>
        {() =>
          letters.length ? (
            <DeadLetterGroups letters={letters} actions={actions} partial={found.hasNextPage} />
          ) : (
            <NoDeadLetters />
          )
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
        <DeadLetterDialog
          id={inspected}
          known={letters.find((each) => each.id === inspected)}
          actions={actions}
          onClose={() => change({ letter: null })}
        />
      )}
      {doing?.what === 'retry' && <RetryDeadLettersDialog letters={doing.letters} onClose={close} onDone={finish} />}
      {doing?.what === 'drop' && <DropDeadLettersDialog letters={doing.letters} onClose={close} onDone={finish} />}
    </Page>
  );
}

function namesOf(letters: DeadLetter[], name: 'workflow' | 'handler'): string[] {
  return [...new Set(letters.map((each) => each[name]))].sort();
}
