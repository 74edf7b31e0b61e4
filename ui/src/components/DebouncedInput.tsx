import {
  type InputHTMLAttributes,
  type KeyboardEvent,
  type Ref,
  useEffect,
  useRef,
  useState,
} from 'react';

type DebouncedInputProps = Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value'> & {
  value: string;
  onValue: (value: string) => void;
  input?: Ref<HTMLInputElement>;
};

const PAUSE_MS = 250;

/** An input that delivers its value once the user stops typing: not each letter is a search. */
export function DebouncedInput({ value, onValue, input, ...rest }: DebouncedInputProps) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const delivered = useRef(value);
  useEffect(() => {
    // A value that was typed here is known; only a change from elsewhere is taken over.
    if (value === delivered.current) return;
    delivered.current = value;
    setText(value);
  }, [value]);
  useEffect(
    () => () => {
      if (timer.current) clearTimeout(timer.current);
    },
    [],
  );
  const deliverAfter = (next: string, pause: number) => {
    setText(next);
    if (timer.current) clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      delivered.current = next.trim();
      onValue(next.trim());
    }, pause);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'Enter') deliverAfter(text, 0);
    if (event.key !== 'Escape') return;
    if (text) deliverAfter('', 0);
    else event.currentTarget.blur();
    event.preventDefault();
  };
  return (
    <input
      ref={input}
      {...rest}
      value={text}
      onChange={(event) => deliverAfter(event.target.value, PAUSE_MS)}
      onKeyDown={onKeyDown}
    />
  );
}
