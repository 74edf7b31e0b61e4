// Any JSON as a tree. Everything is text in the DOM: whatever a value holds, nothing of it is run
// or linked.

import { Download } from 'lucide-react';
import { useMemo, useState } from 'react';
import { Button } from './Button';
import { CopyButton } from './CopyButton';
import { downloadText } from './downloadText';
import { findInJson } from './findInJson';
import { JsonNode } from './JsonNode';

type JsonProps = { value: unknown; name?: string; search?: boolean };

/** A JSON value with search, copy and download. */
export function JsonView({ value, name = 'value', search = true }: JsonProps) {
  const [searchText, setSearchText] = useState('');
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? 'null', [value]);
  const matches = useMemo(
    () => (searchText ? findInJson(value, searchText.toLowerCase()) : null),
    [value, searchText],
  );
  const download = () => downloadText(text, `${name}.json`, 'application/json');
  return (
    <div className="json-view">
      <div className="json-tools">
        {search && (
          <input
            type="search"
            placeholder="Find a key or value"
            aria-label={`Find in ${name}`}
            value={searchText}
            onChange={(event) => setSearchText(event.target.value)}
          />
        )}
        {matches && (
          <span className="faint" role="status">
            {matches.count === 1 ? '1 match' : `${matches.count} matches`}
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
      <div className="json" key={searchText ? 'search' : 'all'}>
        <JsonNode value={value} path="$" depth={0} matches={matches} />
      </div>
    </div>
  );
}
