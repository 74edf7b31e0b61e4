import type { Field } from './fields';

type InputProps = {
  field: Field;
  draft: string;
  onChange: (draft: string) => void;
  isWrong: boolean;
  describedBy: string | undefined;
  id?: string;
  label?: string;
};

const TYPES: Record<string, string> = {
  date: 'date',
  'date-time': 'datetime-local',
  email: 'email',
  uri: 'url',
};
/** A text that may be longer than this gets a textarea. */
const LONG_TEXT = 200;

export function SimpleInput({
  field,
  draft,
  onChange,
  isWrong,
  describedBy,
  id,
  label,
}: InputProps) {
  const shared = {
    id,
    'aria-label': label,
    'aria-invalid': isWrong,
    'aria-describedby': describedBy,
    'aria-required': field.required || undefined,
  };
  if (field.kind === 'constant') {
    return <input {...shared} readOnly value={shown(field.schema.const)} />;
  }
  if (field.kind === 'boolean' && (field.required || typeof field.initial === 'boolean')) {
    return (
      <input
        {...shared}
        type="checkbox"
        checked={draft === 'true'}
        onChange={(event) => onChange(String(event.target.checked))}
      />
    );
  }
  if (field.kind === 'boolean' || field.kind === 'choice') {
    const choices = field.kind === 'boolean' ? [true, false] : field.choices;
    return (
      <select {...shared} value={draft} onChange={(event) => onChange(event.target.value)}>
        <option value="">{field.required ? 'Choose …' : 'not given'}</option>
        {choices.map((choice) => (
          <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
            {shown(choice)}
          </option>
        ))}
      </select>
    );
  }
  if (field.kind === 'json' || Number(field.schema.maxLength) > LONG_TEXT || draft.includes('\n')) {
    return (
      <textarea
        {...shared}
        rows={field.kind === 'json' ? Math.min(10, Math.max(2, draft.split('\n').length)) : 4}
        spellCheck={field.kind !== 'json'}
        placeholder={field.kind === 'json' ? 'JSON' : undefined}
        value={draft}
        onChange={(event) => onChange(event.target.value)}
      />
    );
  }
  const type = field.kind === 'text' ? (TYPES[String(field.schema.format)] ?? 'text') : 'text';
  return (
    <input
      {...shared}
      type={type}
      step={type === 'datetime-local' ? 1 : undefined}
      // An input of type number has no value for "1e": the error message needs what was typed.
      inputMode={inputModeOf(field)}
      autoComplete="off"
      value={draft}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

function inputModeOf(field: Field): 'numeric' | 'decimal' | undefined {
  if (field.kind !== 'number') return undefined;
  return field.schema.type === 'integer' ? 'numeric' : 'decimal';
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
