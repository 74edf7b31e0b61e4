import { type FormEvent, useId, useState } from 'react';
import { Button } from '../../../components/Button';
import type { ItemStates } from './itemStates';

/** Opens an item by its number, as it stands in addresses. */
export function GoToItem({
  items,
  onChoose,
}: {
  items: ItemStates;
  onChoose: (address: string) => void;
}) {
  const id = useId();
  const [text, setText] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const name = items.isLoop ? 'round' : 'item';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const position = items.positionOf(Number(text));
    const isItem = /^\d+$/.test(text.trim()) && position >= 0 && position < items.count;
    if (!isItem) {
      const last = items.indexAt(items.count - 1);
      setProblem(`Give a number from ${items.indexAt(0)} to ${last}`);
    } else if (!items.hasBegun(position)) {
      setProblem(`This ${name} hasn't begun`);
    } else {
      setProblem(null);
      onChoose(items.addressAt(position));
    }
  };
  return (
    <form className="item-go" onSubmit={submit}>
      <label htmlFor={id}>Go to {name}</label>
      <input
        id={id}
        inputMode="numeric"
        size={7}
        value={text}
        aria-invalid={problem !== null}
        aria-describedby={problem ? `${id}-problem` : undefined}
        onChange={(event) => setText(event.target.value)}
      />
      <Button type="submit">Open</Button>
      {problem && (
        <span id={`${id}-problem`} className="field-error" role="alert">
          {problem}
        </span>
      )}
    </form>
  );
}
