import { type InputHTMLAttributes, type KeyboardEvent, type Ref, useEffect, useRef, useState } from 'react';

type TypedProps = Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value'> & {
  value: string;
  onSettle: (value: string) => void;
  input?: Ref<HTMLInputElement>;
};

const PAUSE_MS = 250;

/** An input whose value goes into the address once the viewer pauses: not each letter is a search. */
export function DebouncedInput({ value, onSettle, input, ...rest }: TypedProps) {
  const [typed, setTyped] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const settled = useRef(value);
  useEffect(() => {
    if (value === settled.current) return; // it is what was typed here; only a change from elsewhere is taken over
    settled.current = value;
    setTyped(value);
  }, [value]);
  useEffect(
    () => () => {
      if (timer.current) clearTimeout(timer.current);
    },
    [],
  );
  const settle = (text: string, pause: number) => {
    setTyped(text);
    if (timer.current) clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      settled.current = text.trim();
      onSettle(text.trim());
    }, pause);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'Enter') settle(typed, 0);
    if (event.key !== 'Escape') return;
    if (typed) settle('', 0);
    else event.currentTarget.blur();
    event.preventDefault();
  };
  return (
    <input
      ref={input}
      {...rest}
      value={typed}
      onChange={(event) => settle(event.target.value, PAUSE_MS)}
      onKeyDown={onKeyDown}
    />
  );
}
