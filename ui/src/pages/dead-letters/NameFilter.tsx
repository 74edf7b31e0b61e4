import { type FormEvent, useEffect, useId, useState } from 'react';

type NameProps = { label: string; value: string; known: string[]; onChange: (value: string) => void };

/** A whole name: half of one would find nothing, so it counts when it is known, or with Enter, or when left. */
export function NameFilter({ label, value, known, onChange }: NameProps) {
  const [text, setText] = useState(value);
  const list = useId();
  useEffect(() => setText(value), [value]);
  const type = (next: string) => {
    setText(next);
    if (!next || known.includes(next)) onChange(next);
  };
  const take = (event: FormEvent) => {
    event.preventDefault();
    onChange(text.trim());
  };
  return (
    <form onSubmit={take}>
      <input
        type="search"
        list={list}
        placeholder={label}
        aria-label={label}
        value={text}
        onChange={(event) => type(event.target.value)}
        onBlur={() => onChange(text.trim())}
      />
      <datalist id={list}>
        {known.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </form>
  );
}
