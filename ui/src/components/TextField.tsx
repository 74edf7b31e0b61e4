import { useId } from 'react';

type FieldProps = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  help?: string;
  error?: string | undefined;
  /** Makes it a text of several lines. */
  rows?: number;
  /** The id of a list of suggestions. */
  list?: string | undefined;
  required?: boolean;
};

/** A text with its label, what may stand in it, and what is wrong with it. */
export function TextField({
  label,
  value,
  onChange,
  help,
  error,
  rows,
  list,
  required,
}: FieldProps) {
  const id = useId();
  const described = [help ? `${id}-help` : '', error ? `${id}-error` : '']
    .filter(Boolean)
    .join(' ');
  const shared = {
    id,
    value,
    'aria-invalid': error !== undefined,
    'aria-describedby': described || undefined,
    'aria-required': required,
    spellCheck: false,
  };
  return (
    <div className="field">
      <label htmlFor={id} className="field-name">
        {label}
      </label>
      {rows ? (
        <textarea {...shared} rows={rows} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input {...shared} list={list} onChange={(event) => onChange(event.target.value)} />
      )}
      {help && (
        <span id={`${id}-help`} className="faint">
          {help}
        </span>
      )}
      {error && (
        <span id={`${id}-error`} className="field-error" role="alert">
          {error}
        </span>
      )}
    </div>
  );
}
