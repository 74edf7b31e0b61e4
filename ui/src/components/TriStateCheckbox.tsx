import { useEffect, useRef } from 'react';

type TickProps = {
  state: 'none' | 'some' | 'all';
  label: string;
  disabled?: boolean;
  onChange: (on: boolean) => void;
};

/** A checkbox for one or many items. Only a script can set the state "some". */
export function TriStateCheckbox({ state, label, disabled = false, onChange }: TickProps) {
  const element = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (element.current) element.current.indeterminate = state === 'some';
  }, [state]);
  return (
    <input
      ref={element}
      type="checkbox"
      aria-label={label}
      disabled={disabled}
      checked={state === 'all'}
      onChange={(event) => onChange(event.target.checked)}
    />
  );
}
