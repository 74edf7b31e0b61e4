import { useMemo } from 'react';
import { Empty } from '../../../components/Empty';
import { DiffTable } from './DiffTable';
import { countChanges, diffRows, sectionsOf } from './diffRows';

type ComparedProps = { before: string; after: string; label: string; what?: string };

export function DiffResult({ before, after, label, what = 'versions' }: ComparedProps) {
  const rows = useMemo(() => diffRows(before, after), [before, after]);
  const sections = useMemo(() => sectionsOf(rows ?? []), [rows]);
  if (!rows) {
    return <Empty title={`These ${what} are too large and too different to compare here`} />;
  }
  const { added, removed } = countChanges(rows);
  if (!added && !removed) return <Empty title={`These ${what} are the same`} />;
  return (
    <>
      <p className="df-count" role="status">
        <span className="df-plus">+{added}</span> <span className="df-minus">−{removed}</span>{' '}
        <span className="faint">{added + removed === 1 ? 'line' : 'lines'}</span>
      </p>
      <DiffTable sections={sections} label={label} />
    </>
  );
}
