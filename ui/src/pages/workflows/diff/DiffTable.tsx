import { ChevronsUpDown } from 'lucide-react';
import { useState } from 'react';
import { type Row, type Section, unified } from './diffRows';
import { SideBySideRow } from './SideBySideRow';
import { UnifiedRow } from './UnifiedRow';
import { useNarrow } from './useNarrow';

/** How many rows are drawn at first, and added by each "Show more". */
const ROWS_STEP = 1500;

export function DiffTable({ sections, label }: { sections: Section[]; label: string }) {
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [rowsMax, setRowsMax] = useState(ROWS_STEP);
  const isNarrow = useNarrow();
  let left = rowsMax;
  const shown = sections.flatMap((section): { section: Section; rows: Row[] | null }[] => {
    if (left <= 0) return [];
    if (section.isFolded && !opened.has(section.id)) return [{ section, rows: null }];
    const rows = section.rows.slice(0, left);
    left -= rows.length;
    return [{ section, rows }];
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways, also by keys
    <section className="df-wrap" aria-label={label} tabIndex={0}>
      <table className={isNarrow ? 'df unified' : 'df'}>
        <colgroup>
          <col className="df-narrow" />
          <col className={isNarrow ? 'df-narrow' : ''} />
          {!isNarrow && <col className="df-narrow" />}
          <col />
        </colgroup>
        {shown.map(({ section, rows }) => (
          <tbody key={section.id}>
            {rows === null ? (
              <tr className="df-fold">
                <td colSpan={isNarrow ? 3 : 4}>
                  <button type="button" onClick={() => setOpened(new Set([...opened, section.id]))}>
                    <ChevronsUpDown size={14} aria-hidden="true" /> Show {section.rows.length} lines
                  </button>
                </td>
              </tr>
            ) : (
              <SectionRows rows={rows} isNarrow={isNarrow} />
            )}
          </tbody>
        ))}
      </table>
      {left <= 0 && (
        <p className="df-more">
          <button type="button" className="button" onClick={() => setRowsMax(rowsMax + ROWS_STEP)}>
            Show more
          </button>
        </p>
      )}
    </section>
  );
}

function SectionRows({ rows, isNarrow }: { rows: Row[]; isNarrow: boolean }) {
  if (isNarrow) {
    return unified(rows).map((line) => (
      <UnifiedRow key={`${line.left} ${line.right}`} line={line} />
    ));
  }
  return rows.map((row) => (
    <SideBySideRow key={`${row.left?.number} ${row.right?.number}`} row={row} />
  ));
}
