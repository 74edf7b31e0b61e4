import { StateIcon } from '../../components/StateIcon';
import { EXECUTION_STATES, stateClass } from '../../states';

export function StateFilter({
  chosen,
  onChange,
}: {
  chosen: string[];
  onChange: (states: string[]) => void;
}) {
  return (
    <fieldset className="xs-states">
      <legend className="visually-hidden">States</legend>
      {EXECUTION_STATES.map((state) => {
        const isOn = chosen.includes(state);
        return (
          <button
            key={state}
            type="button"
            className={`xs-chip ${stateClass(state)}`}
            aria-pressed={isOn}
            onClick={() =>
              onChange(isOn ? chosen.filter((other) => other !== state) : [...chosen, state])
            }
          >
            <StateIcon state={state} size={13} />
            {state}
          </button>
        );
      })}
    </fieldset>
  );
}
