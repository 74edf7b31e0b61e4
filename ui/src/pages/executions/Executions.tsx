import { ArrowUp, Keyboard } from 'lucide-react';
import { useCallback, useRef, useState } from 'react';
import { useMay } from '../../api/useMay';
import { Button } from '../../components/Button';
import { Card } from '../../components/Card';
import { ErrorBox } from '../../components/ErrorBox';
import { Loading } from '../../components/Loading';
import { Page } from '../../components/Page';
import { useTitle } from '../../components/useTitle';
import { useQueryString } from '../../routing/useQueryString';
import { BulkBar } from './BulkBar';
import { ExecutionTable } from './ExecutionTable';
import { FilterBar } from './FilterBar';
import { CLEARED, hasFilters, readFilters } from './filters';
import { KeysDialog } from './KeysDialog';
import { NoExecutions } from './NoExecutions';
import { useExecutionList } from './useExecutionList';
import { useListKeys } from './useListKeys';
import { useSelection } from './useSelection';

/** Scrolled further than this, the user has left the top of the list. */
const TOP_PX = 60;

export default function Executions() {
  useTitle('Executions');
  const [query, change] = useQueryString();
  const filters = readFilters(query);
  const search = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const hasSelection = useRef(false);
  const isPaused = () =>
    window.scrollY > TOP_PX ||
    hasSelection.current ||
    (list.current?.contains(document.activeElement) ?? false);
  const executions = useExecutionList(filters, isPaused);
  const { rows, waiting, gap, next } = executions.list;
  const isEmpty = rows.length === 0;
  const selection = useSelection(rows);
  hasSelection.current = selection.ids.size > 0;
  const [isHelpOpen, setHelpOpen] = useState(false);
  const mayOperate = useMay('operate');
  const { setCursor } = useListKeys({
    list,
    onSelect: mayOperate ? selection.toggle : () => {},
    onSearch: () => search.current?.select(),
    onEscape: () => {
      if (selection.ids.size) selection.clear();
      else (document.activeElement as HTMLElement | null)?.blur();
    },
    onHelp: () => setHelpOpen(true),
  });
  const labels = query.getAll('label').join('\n');
  const onLabel = useCallback(
    (label: string) => change({ label: [...new Set([...labels.split('\n'), label])] }),
    [change, labels],
  );
  const showNew = () => {
    executions.showNew();
    window.scrollTo({ top: 0 });
  };
  const keysLabel = 'Keyboard shortcuts (?)';
  return (
    <Page
      title="Executions"
      actions={
        <Button
          kind="quiet"
          icon={Keyboard}
          aria-label={keysLabel}
          title={keysLabel}
          onClick={() => setHelpOpen(true)}
        />
      }
    >
      <FilterBar filters={filters} change={change} search={search} />
      {executions.error && <ErrorBox error={executions.error} retry={executions.refetch} />}
      {waiting > 0 && (
        <Button className="xs-new" icon={ArrowUp} onClick={showNew}>
          {gap ? `More than ${waiting} new` : `${waiting} new`}
        </Button>
      )}
      <Card className={executions.isCurrent ? 'xs-card' : 'xs-card stale'}>
        <div ref={list}>
          {!isEmpty && (
            <ExecutionTable
              rows={rows}
              caption="Executions, the newest first"
              isBusy={!executions.isCurrent}
              onLabel={onLabel}
              onCursor={setCursor}
              {...(mayOperate && {
                selection: { ids: selection.ids, onSelect: selection.toggle, onAll: selection.all },
              })}
            />
          )}
          {isEmpty && executions.isCurrent && (
            <NoExecutions isFiltered={hasFilters(filters)} onClear={() => change(CLEARED)} />
          )}
          {isEmpty && !executions.isCurrent && !executions.error && <Loading />}
        </div>
      </Card>
      {!isEmpty && (
        <p className="xs-foot">
          <span className="faint">
            {next ? `${rows.length} loaded` : `${rows.length} in total`}
          </span>
          {next && (
            <Button busy={executions.loadingMore} onClick={() => void executions.loadMore()}>
              Load more
            </Button>
          )}
        </p>
      )}
      {selection.selected.length > 0 && (
        <BulkBar rows={selection.selected} onClear={selection.clear} />
      )}
      {isHelpOpen && <KeysDialog onClose={() => setHelpOpen(false)} />}
    </Page>
  );
}
