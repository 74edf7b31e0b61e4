import type { Format } from '../../editor/documentTree';

type SwitchProps = { format: Format; disabled: boolean; onChoose: (format: Format) => void };

const FORMATS = [
  { id: 'json', label: 'JSON' },
  { id: 'yaml', label: 'YAML' },
] as const;

/** Converts the text. A text that can't be read can't be converted either. */
export function FormatSwitch({ format, disabled, onChoose }: SwitchProps) {
  return (
    <fieldset className="switch">
      <legend className="visually-hidden">Format</legend>
      {FORMATS.map(({ id, label }) => (
        <button
          key={id}
          type="button"
          aria-pressed={format === id}
          disabled={disabled && format !== id}
          onClick={() => onChoose(id)}
        >
          {label}
        </button>
      ))}
    </fieldset>
  );
}
