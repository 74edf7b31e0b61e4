const MODES = { form: 'Form', json: 'JSON' } as const;

export function InputModes({
  mode,
  onChoose,
}: {
  mode: 'form' | 'json';
  onChoose: (mode: 'form' | 'json') => void;
}) {
  return (
    <fieldset className="st-modes">
      <legend className="visually-hidden">Input mode</legend>
      {(['form', 'json'] as const).map((choice) => (
        <button
          key={choice}
          type="button"
          aria-pressed={mode === choice}
          onClick={() => onChoose(choice)}
        >
          {MODES[choice]}
        </button>
      ))}
    </fieldset>
  );
}
