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
import './dead-letters.css';

type OpenDialog = { what: 'retry' | 'drop'; letters: DeadLetter[] } | null;

export default function DeadLetters() {
  useTitle('Dead letters');
  const [query, change] = useQueryString();
  const [chosen, setChosen] = useState<Chosen>(new Set());
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const mayOperate = useMay('operate');
  const deadLetters = useDeadLetters(query);
  const letters = useMemo(
    () => deadLetters.data?.pages.flatMap((page) => page.items) ?? [],
    [deadLetters.data],
  );
  const open = letters.filter((letter) => letter.closed === null);
  const shownIds = stillShown(
    chosen,
    open.map((letter) => letter.id),
  );
  const openDialog = (what: 'retry' | 'drop') => (selected: DeadLetter[]) => {
    change({ letter: null }, { replace: true });
    setDialog({ what, letters: selected });
  };
  const actions: DeadLetterActions = {
    mayOperate,
    chosen,
    onChoose: (ids, on) => setChosen((now) => withAll(now, ids, on)),
    onRetry: openDialog('retry'),
    onDrop: openDialog('drop'),
    onInspect: (letter) => change({ letter: String(letter.id) }),
  };
  const close = () => setDialog(null);
  const finish = () => {
    const done = dialog?.letters.map((letter) => letter.id) ?? [];
    setChosen((now) => withAll(now, done, false));
    setDialog(null);
  };
  const inspected = Number(query.get('letter')) || null;
  return (
    <Page title="Dead letters">
      <DeadLetterFilters
        query={query}
        change={(changes) => change({ ...changes, group: null })}
        workflows={distinct(letters, 'workflow')}
        handlers={distinct(letters, 'handler')}
      />
      <Loaded query={deadLetters}>
        {() =>
          letters.length ? (
            <DeadLetterGroups
              letters={letters}
              actions={actions}
              partial={deadLetters.hasNextPage}
            />
          ) : (
            <NoDeadLetters />
          )
        }
      </Loaded>
      {deadLetters.hasNextPage && (
        <Button
          className="dead-letters-more"
          busy={deadLetters.isFetchingNextPage}
          onClick={() => void deadLetters.fetchNextPage()}
        >
          Load more
        </Button>
      )}
      {mayOperate && shownIds.length > 0 && (
        <SelectionBar
          letters={open.filter((letter) => chosen.has(letter.id))}
          actions={actions}
          onClear={() => setChosen(new Set())}
        />
      )}
      {inspected && !dialog && (
        <DeadLetterDialog
          id={inspected}
          listed={letters.find((letter) => letter.id === inspected)}
          actions={actions}
          onClose={() => change({ letter: null })}
        />
      )}
      {dialog?.what === 'retry' && (
        <RetryDeadLettersDialog letters={dialog.letters} onClose={close} onDone={finish} />
      )}
      {dialog?.what === 'drop' && (
        <DropDeadLettersDialog letters={dialog.letters} onClose={close} onDone={finish} />
      )}
    </Page>
  );
}

function distinct(letters: DeadLetter[], name: 'workflow' | 'handler'): string[] {
  return [...new Set(letters.map((letter) => letter[name]))].sort();
}
