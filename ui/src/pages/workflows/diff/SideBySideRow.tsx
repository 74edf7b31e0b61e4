import type { Line, Row } from './diffRows';
import { LineParts } from './LineParts';

export function SideBySideRow({ row }: { row: Row }) {
  return (
    <tr>
      <DiffSide line={row.left} className={row.kind === 'same' ? '' : 'removed'} change="removed" />
      <DiffSide line={row.right} className={row.kind === 'same' ? '' : 'added'} change="added" />
    </tr>
  );
}

function DiffSide({
  line,
  className,
  change,
}: {
  line: Line | null;
  className: string;
  change: string;
}) {
  if (!line) return <td colSpan={2} className="df-none" />;
  return (
    <>
      <td className={`df-number ${className}`}>{line.number}</td>
      <td className={`df-text ${className}`}>
        {className && <span className="visually-hidden">{change}: </span>}
        <LineParts parts={line.parts} />
      </td>
    </>
  );
}
