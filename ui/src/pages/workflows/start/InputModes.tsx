const MODES = { form: 'Form', json: 'JSON' } as const;

export function InputModes({ mode, onChoose }: { mode: 'form' | 'json'; onChoose: (mode: 'form' | 'json') => void }) {
  return (
    <fieldset className="st-modes">
      <legend className="visually-hidden">How to give the input</legend>
      {(['form', 'json'] as const).map((each) => (
        <button key={each} type="button" aria-pressed={mode === each} onClick={() => onChoose(each)}>
          {MODES[each]}
        </button>
      ))}
    </fieldset>
  );
}
