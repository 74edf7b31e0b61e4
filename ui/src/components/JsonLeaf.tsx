import { useState } from 'react';
import { Button } from './Button';

const LONG_TEXT = 400;

export function JsonLeaf({ value, hit }: { value: unknown; hit: boolean }) {
  const [whole, setWhole] = useState(false);
  const kind = value === null ? 'null' : typeof value;
  const text = typeof value === 'string' ? value : String(value);
  const isLong = text.length > LONG_TEXT && !whole;
  return (
    <span className={`json-leaf json-${kind}${hit ? ' hit' : ''}`}>
      {isLong ? `${text.slice(0, LONG_TEXT)}…` : text}
      {isLong && (
        <Button
          kind="quiet"
          onClick={() => setWhole(true)}
        >{`all ${text.length} characters`}</Button>
      )}
    </span>
  );
}
