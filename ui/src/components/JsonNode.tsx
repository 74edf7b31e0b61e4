import { ChevronDown, ChevronRight } from 'lucide-react';
import { useState } from 'react';
import { Button } from './Button';
import type { JsonMatches } from './findInJson';
import { JsonLeaf } from './JsonLeaf';

const PART = 100;

const OPEN_DEPTH = 2;

type NodeProps = {
  value: unknown;
  name?: string;
  path: string;
  depth: number;
  matches: JsonMatches | null;
};

export function JsonNode({ value, name, path, depth, matches }: NodeProps) {
  const [open, setOpen] = useState<boolean | null>(null);
  const [parts, setParts] = useState(1);
  const hit = matches?.hits.has(path) ?? false;
  const label =
    name === undefined ? null : <span className={hit ? 'json-key hit' : 'json-key'}>{name}</span>;
  if (value === null || typeof value !== 'object') {
    return (
      <div className="json-line">
        {label}
        <JsonLeaf value={value} hit={hit} />
      </div>
    );
  }
  const entries = Object.entries(value);
  const isOpen =
    open ??
    (matches
      ? matches.paths.has(path) || depth === 0
      : depth < OPEN_DEPTH && entries.length <= PART);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  const Icon = isOpen ? ChevronDown : ChevronRight;
  return (
    <div className="json-branch">
      <button
        type="button"
        className="json-line json-toggle"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon size={13} aria-hidden="true" />
        {label}
        <span className="faint">{size}</span>
      </button>
      {isOpen && (
        <div className="json-children">
          {entries.slice(0, parts * PART).map(([key, child]) => (
            <JsonNode
              key={key}
              name={key}
              value={child}
              path={`${path}/${key}`}
              depth={depth + 1}
              matches={matches}
            />
          ))}
          {entries.length > parts * PART && (
            <Button
              kind="quiet"
              onClick={() => setParts(parts + 10)}
            >{`${entries.length - parts * PART} more`}</Button>
          )}
        </div>
      )}
    </div>
  );
}
