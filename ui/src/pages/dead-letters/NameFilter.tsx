import { type FormEvent, useEffect, useId, useState } from 'react';

type NameProps = {
  label: string;
  value: string;
  suggestions: string[];
  onChange: (value: string) => void;
};

/**
 * A filter by a whole name. It applies when the name is a suggestion, with Enter, or when the input
 * loses the focus.
 */
export function NameFilter({ label, value, suggestions, onChange }: NameProps) {
  const [text, setText] = useState(value);
  const list = useId();
  useEffect(() => setText(value), [value]);
  const onType = (next: string) => {
    setText(next);
    if (!next || suggestions.includes(next)) onChange(next);
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    onChange(text.trim());
  };
  return (
    <form onSubmit={onSubmit}>
      <input
        type="search"
        list={list}
        placeholder={label}
        aria-label={label}
        value={text}
        onChange={(event) => onType(event.target.value)}
        onBlur={() => onChange(text.trim())}
      />
      <datalist id={list}>
        {suggestions.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </form>
  );
}
