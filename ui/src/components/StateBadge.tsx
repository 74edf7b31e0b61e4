import { stateClass } from '../states';
import { StateIcon } from './StateIcon';

export function StateBadge({ state }: { state: string }) {
  return (
    <span className={`badge ${stateClass(state)}`}>
      <StateIcon state={state} size={13} />
      {state}
    </span>
  );
}
