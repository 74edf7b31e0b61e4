import { stateClass } from '../states';

/** Shares of states in one line, for a group of nodes or a workflow. */
export function StateShares({ counts }: { counts: Record<string, number> }) {
  const entries = Object.entries(counts).filter(([, count]) => count > 0);
  const text = entries.map(([state, count]) => `${count} ${state.toLowerCase()}`).join(', ');
  return (
    <span className="shares" role="img" aria-label={text || 'none'} title={text}>
      {entries.map(([state, count]) => (
        <span key={state} className={`share ${stateClass(state)}`} style={{ flexGrow: count }} />
      ))}
    </span>
  );
}
