import { useMemo } from 'react';
import { Empty } from '../../../components/Empty';
import { DiffTable } from './DiffTable';
import { countChanges, diffRows, sectionsOf } from './diffRows';

type ComparedProps = { before: string; after: string; from: number; to: number };

export function DiffResult({ before, after, from, to }: ComparedProps) {
  const rows = useMemo(() => diffRows(before, after), [before, after]);
  const sections = useMemo(() => sectionsOf(rows ?? []), [rows]);
  if (!rows) {
    return <Empty title="These versions are too large and too different to compare here" />;
  }
  const { added, removed } = countChanges(rows);
  if (!added && !removed) return <Empty title="These versions are the same" />;
  return (
    <>
      <p className="df-count" role="status">
        <span className="df-plus">+{added}</span> <span className="df-minus">−{removed}</span>{' '}
        <span className="faint">{added + removed === 1 ? 'line' : 'lines'}</span>
      </p>
      <DiffTable sections={sections} label={`Version ${from} and version ${to} side by side`} />
    </>
  );
}
