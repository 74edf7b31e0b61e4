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

/** Below this the viewer has left the top of the list. */
const TOP_PX = 60;

export default function Executions() {
  useTitle('Executions');
  const [query, change] = useQueryString();
  const filters = readFilters(query);
  const search = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const hasSelection = useRef(false);
  const isHeld = () =>
    window.scrollY > TOP_PX || hasSelection.current || (list.current?.contains(document.activeElement) ?? false);
  const found = useExecutionList(filters, isHeld);
  const { rows, waiting, gap, next } = found.list;
  const selection = useSelection(rows);
  hasSelection.current = selection.ids.size > 0;
  const [help, setHelp] = useState(false);
  const mayOperate = useMay('operate');
  const { setCursor } = useListKeys({
    list,
    onSelect: mayOperate ? selection.toggle : () => {},
    onSearch: () => search.current?.select(),
    onEscape: () => {
      if (selection.ids.size) selection.clear();
      else (document.activeElement as HTMLElement | null)?.blur();
    },
    onHelp: () => setHelp(true),
  });
  const labels = query.getAll('label').join('\n');
  const onLabel = useCallback(
    (label: string) => change({ label: [...new Set([...labels.split('\n'), label])] }),
    [change, labels],
  );
  const showNew = () => {
    found.showNew();
    window.scrollTo({ top: 0 });
  };
  const keysLabel = 'Keys for this list (?)';
  return (
    <Page
      title="Executions"
      actions={
        <Button kind="quiet" icon={Keyboard} aria-label={keysLabel} title={keysLabel} onClick={() => setHelp(true)} />
      }
    >
      <FilterBar filters={filters} change={change} search={search} />
      {found.error && <ErrorBox error={found.error} retry={found.again} />}
      {waiting > 0 && (
        <Button className="xs-new" icon={ArrowUp} onClick={showNew}>
          {gap ? `More than ${waiting} new` : `${waiting} new`}
        </Button>
      )}
      <Card className={found.isCurrent ? 'xs-card' : 'xs-card stale'}>
        <div ref={list}>
          {rows.length > 0 ? (
            <ExecutionTable
              rows={rows}
              caption="Executions, the newest first"
              isBusy={!found.isCurrent}
              onLabel={onLabel}
              onCursor={setCursor}
              {...(mayOperate
                ? { selection: { ids: selection.ids, onSelect: selection.toggle, onAll: selection.all } }
                : {})}
            />
          ) : found.isCurrent ? (
            <NoExecutions isFiltered={hasFilters(filters)} onClear={() => change(CLEARED)} />
          ) : (
            !found.error && <Loading />
          )}
        </div>
      </Card>
      {rows.length > 0 && (
        <p className="xs-foot">
          <span className="faint">{next ? `${rows.length} loaded` : `${rows.length} in all`}</span>
          {next && (
            <Button busy={found.loadingMore} onClick={() => void found.loadMore()}>
              Load more
            </Button>
          )}
        </p>
      )}
      {selection.selected.length > 0 && <BulkBar rows={selection.selected} onClear={selection.clear} />}
      {help && <KeysDialog onClose={() => setHelp(false)} />}
    </Page>
  );
}
