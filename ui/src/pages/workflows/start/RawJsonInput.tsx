import { useId } from 'react';

type RawProps = {
  text: string;
  error: string | null;
  hasSchema: boolean;
  onChange: (text: string) => void;
};

export function RawJsonInput({ text, error, hasSchema, onChange }: RawProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>
        <span className="st-name">Input</span>
      </label>
      <textarea
        id={id}
        className="st-raw"
        spellCheck={false}
        rows={Math.min(22, Math.max(6, text.split('\n').length + 1))}
        value={text}
        aria-invalid={error !== null}
        aria-describedby={`${id}-help`}
        onChange={(event) => onChange(event.target.value)}
      />
      <span id={`${id}-help`} className={error ? 'field-error' : 'faint'}>
        {error ??
          (hasSchema
            ? 'A JSON object'
            : 'A JSON object. The workflow has no input_schema, so there is no form.')}
      </span>
    </div>
  );
}
