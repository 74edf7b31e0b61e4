import { ChevronsUpDown } from 'lucide-react';
import { useState, useSyncExternalStore } from 'react';
import { type Line, type OneLine, type Part, type Row, type Section, unified } from './model';

const NARROW = '(max-width: 820px)';
/** So many rows are drawn at first, and with each wish for more. */
const PORTION = 1500;

function useNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      const query = matchMedia(NARROW);
      query.addEventListener('change', listener);
      return () => query.removeEventListener('change', listener);
    },
    () => matchMedia(NARROW).matches,
  );
}

export function DiffRows({ sections, label }: { sections: Section[]; label: string }) {
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [most, setMost] = useState(PORTION);
  const isNarrow = useNarrow();
  let left = most;
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
            ) : isNarrow ? (
              unified(rows).map((line) => <UnifiedRow key={`${line.left} ${line.right}`} line={line} />)
            ) : (
              rows.map((row) => <SideRow key={`${row.left?.number} ${row.right?.number}`} row={row} />)
            )}
          </tbody>
        ))}
      </table>
      {left <= 0 && (
        <p className="df-more">
          <button type="button" className="button" onClick={() => setMost(most + PORTION)}>
            Show more
          </button>
        </p>
      )}
    </section>
  );
}

function SideRow({ row }: { row: Row }) {
  return (
    <tr>
      <Side line={row.left} className={row.kind === 'same' ? '' : 'removed'} said="removed" />
      <Side line={row.right} className={row.kind === 'same' ? '' : 'added'} said="added" />
    </tr>
  );
}

function Side({ line, className, said }: { line: Line | null; className: string; said: string }) {
  if (!line) return <td colSpan={2} className="df-none" />;
  return (
    <>
      <td className={`df-number ${className}`}>{line.number}</td>
      <td className={`df-text ${className}`}>
        {className && <span className="visually-hidden">{said}: </span>}
        <Parts parts={line.parts} />
      </td>
    </>
  );
}

const SIGNS = { '-': 'removed', '+': 'added', ' ': '' };

function UnifiedRow({ line }: { line: OneLine }) {
  const className = SIGNS[line.sign];
  return (
    <tr>
      <td className={`df-number ${className}`}>{line.left}</td>
      <td className={`df-number ${className}`}>{line.right}</td>
      <td className={`df-text ${className}`}>
        {className && <span className="visually-hidden">{className}: </span>}
        <Parts parts={line.parts} />
      </td>
    </tr>
  );
}

function Parts({ parts }: { parts: Part[] }) {
  // biome-ignore lint/suspicious/noArrayIndexKey: a line's parts never change
  return parts.map((part, index) => (part.isChanged ? <mark key={index}>{part.text}</mark> : part.text));
}
