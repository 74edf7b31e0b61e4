type ChoiceProps = {
  label: string;
  chosen: number;
  numbers: number[];
  onChoose: (version: string) => void;
};

export function VersionChoice({ label, chosen, numbers, onChoose }: ChoiceProps) {
  return (
    <label>
      {label}{' '}
      <select value={chosen} onChange={(event) => onChoose(event.target.value)}>
        {numbers.map((number) => (
          <option key={number} value={number}>
            version {number}
          </option>
        ))}
      </select>
    </label>
  );
}
