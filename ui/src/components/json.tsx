// Any JSON as a tree. Everything is text in the DOM: whatever an output holds, nothing of it is run or linked.
import { ChevronDown, ChevronRight, Download } from 'lucide-react';
import { useMemo, useState } from 'react';
import { Button, CopyButton } from './basics';

const PART = 100;
const OPEN_DEPTH = 2;
const LONG_TEXT = 400;

type JsonProps = { value: unknown; name?: string; search?: boolean };

/** With search, copy and download. */
export function JsonView({ value, name = 'value', search = true }: JsonProps) {
  const [wanted, setWanted] = useState('');
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? 'null', [value]);
  const found = useMemo(() => (wanted ? matches(value, wanted.toLowerCase()) : null), [value, wanted]);
  const download = () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
    link.download = `${name.replace(/[^\w.-]+/g, '_')}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  return (
    <div className="json-view">
      <div className="json-tools">
        {search && (
          <input
            type="search"
            placeholder="Find a key or value"
            aria-label={`Find in ${name}`}
            value={wanted}
            onChange={(event) => setWanted(event.target.value)}
          />
        )}
        {found && (
          <span className="faint" role="status">
            {found.count === 1 ? '1 match' : `${found.count} matches`}
          </span>
        )}
        <span className="spacer" />
        <CopyButton text={text} label={`Copy ${name}`} />
        <Button
          kind="quiet"
          icon={Download}
          aria-label={`Download ${name}`}
          title={`Download ${name}`}
          onClick={download}
        />
      </div>
      <div className="json" key={wanted ? 'search' : 'all'}>
        <JsonNode value={value} path="$" depth={0} found={found} />
      </div>
    </div>
  );
}

type Found = { paths: Set<string>; hits: Set<string>; count: number };

/** The places whose key or value has the text in it, and all places on the way there. */
export function matches(root: unknown, wanted: string): Found {
  const found: Found = { paths: new Set(), hits: new Set(), count: 0 };
  const stack: { value: unknown; path: string; key: string; way: string[] }[] = [
    { value: root, path: '$', key: '', way: [] },
  ];
  while (stack.length) {
    const { value, path, key, way } = stack.pop() as (typeof stack)[number];
    const isLeaf = value === null || typeof value !== 'object';
    if (key.toLowerCase().includes(wanted) || (isLeaf && String(value).toLowerCase().includes(wanted))) {
      found.count += 1;
      found.hits.add(path);
      for (const each of way) found.paths.add(each);
    }
    if (isLeaf) continue;
    for (const [name, child] of Object.entries(value as object)) {
      stack.push({ value: child, path: `${path}/${name}`, key: Array.isArray(value) ? '' : name, way: [...way, path] });
    }
  }
  return found;
}

type NodeProps = { value: unknown; name?: string; path: string; depth: number; found: Found | null };

function JsonNode({ value, name, path, depth, found }: NodeProps) {
  const [open, setOpen] = useState<boolean | null>(null);
  const [parts, setParts] = useState(1);
  const hit = found?.hits.has(path) ?? false;
  const label = name === undefined ? null : <span className={hit ? 'json-key hit' : 'json-key'}>{name}</span>;
  if (value === null || typeof value !== 'object') {
    return (
      <div className="json-line">
        {label}
        <Leaf value={value} hit={hit} />
      </div>
    );
  }
  const entries = Object.entries(value);
  const isOpen = open ?? (found ? found.paths.has(path) || depth === 0 : depth < OPEN_DEPTH && entries.length <= PART);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  const Icon = isOpen ? ChevronDown : ChevronRight;
  return (
    <div className="json-branch">
      <button type="button" className="json-line json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon size={13} aria-hidden="true" />
        {label}
        <span className="faint">{size}</span>
      </button>
      {isOpen && (
        <div className="json-children">
          {entries.slice(0, parts * PART).map(([key, child]) => (
            <JsonNode key={key} name={key} value={child} path={`${path}/${key}`} depth={depth + 1} found={found} />
          ))}
          {entries.length > parts * PART && (
            <Button kind="quiet" onClick={() => setParts(parts + 10)}>{`${entries.length - parts * PART} more`}</Button>
          )}
        </div>
      )}
    </div>
  );
}

function Leaf({ value, hit }: { value: unknown; hit: boolean }) {
  const [whole, setWhole] = useState(false);
  const kind = value === null ? 'null' : typeof value;
  const text = typeof value === 'string' ? value : String(value);
  const isLong = text.length > LONG_TEXT && !whole;
  return (
    <span className={`json-leaf json-${kind}${hit ? ' hit' : ''}`}>
      {isLong ? `${text.slice(0, LONG_TEXT)}…` : text}
      {isLong && <Button kind="quiet" onClick={() => setWhole(true)}>{`all ${text.length} characters`}</Button>}
    </span>
  );
}
