import { iconOf } from '../states';

export function StateIcon({ state, size = 14 }: { state: string; size?: number }) {
  const Icon = iconOf(state);
  return (
    <Icon size={size} aria-hidden="true" className={state === 'RUNNING' ? 'turns' : undefined} />
  );
}
