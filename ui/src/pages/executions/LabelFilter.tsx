import { X } from 'lucide-react';
import { type FormEvent, useId, useState } from 'react';
import { isLabel } from './filters';

export function LabelFilter({
  labels,
  onChange,
}: {
  labels: string[];
  onChange: (labels: string[]) => void;
}) {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState(false);
  const field = useId();
  const add = (event: FormEvent) => {
    event.preventDefault();
    const label = text.trim();
    setWrong(label !== '' && !isLabel(label));
    if (!isLabel(label)) return;
    onChange([...new Set([...labels, label])]);
    setText('');
  };
  return (
    <form className="field xs-label" onSubmit={add}>
      <label htmlFor={field}>Labels</label>
      <span className="xs-label-row">
        {labels.map((label) => (
          <button
            key={label}
            type="button"
            className="tag"
            aria-label={`Remove the filter ${label}`}
            onClick={() => onChange(labels.filter((other) => other !== label))}
          >
            {label} <X size={12} aria-hidden="true" />
          </button>
        ))}
        <input
          id={field}
          value={text}
          placeholder="key:value, Enter"
          aria-invalid={wrong}
          aria-describedby={wrong ? `${field}-wrong` : undefined}
          onChange={(event) => setText(event.target.value)}
        />
      </span>
      {wrong && (
        <span id={`${field}-wrong`} className="field-error" role="alert">
          Write key:value, such as team:billing
        </span>
      )}
    </form>
  );
}
