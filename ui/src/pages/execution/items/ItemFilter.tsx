import { useRef } from 'react';
import { StateBadge } from '../../../components/StateBadge';
import { NODE_ORDER } from '../../../states';

type FilterProps = {
  counts: Record<string, number>;
  chosen: ReadonlySet<string>;
  onChange: (chosen: ReadonlySet<string>) => void;
};

/** Which states are shown; none chosen means all. */
export function ItemFilter({ counts, chosen, onChange }: FilterProps) {
  // A state stays, so that the grid below doesn't move while items go through their states.
  const seen = useRef(new Set<string>());
  for (const state of Object.keys(counts)) seen.current.add(state);
  const toggle = (state: string) => {
    const next = new Set(chosen);
    if (!next.delete(state)) next.add(state);
    onChange(next);
  };
  return (
    <fieldset className="node-filters">
      <legend className="visually-hidden">Show only these states</legend>
      {NODE_ORDER.filter((state) => seen.current.has(state)).map((state) => (
        <button
          key={state}
          type="button"
          className="chip"
          aria-pressed={chosen.has(state)}
          onClick={() => toggle(state)}
        >
          <StateBadge state={state} /> {(counts[state] ?? 0).toLocaleString('en')}
        </button>
      ))}
    </fieldset>
  );
}
