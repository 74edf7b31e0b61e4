import type { OneLine } from './diffRows';
import { LineParts } from './LineParts';

const SIGNS = { '-': 'removed', '+': 'added', ' ': '' };

export function UnifiedRow({ line }: { line: OneLine }) {
  const className = SIGNS[line.sign];
  return (
    <tr>
      <td className={`df-number ${className}`}>{line.left}</td>
      <td className={`df-number ${className}`}>{line.right}</td>
      <td className={`df-text ${className}`}>
        {className && <span className="visually-hidden">{className}: </span>}
        <LineParts parts={line.parts} />
      </td>
    </tr>
  );
}
