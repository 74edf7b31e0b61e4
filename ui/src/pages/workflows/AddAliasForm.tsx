import { Plus } from 'lucide-react';
import { type FormEvent, useId, useState } from 'react';
import type { Aliases } from '../../api/calls';
import { Button } from '../../components/Button';
import { wrongAlias } from './aliases';

type AddProps = { version: number; aliases: Aliases; onAdd: (alias: string) => void };

export function AddAliasForm({ version, aliases, onAdd }: AddProps) {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState<string | null>(null);
  const id = useId();
  const add = (event: FormEvent) => {
    event.preventDefault();
    const why = wrongAlias(text.trim(), aliases);
    setWrong(why);
    if (!why) onAdd(text.trim());
  };
  return (
    <form className="field" onSubmit={add}>
      <label htmlFor={id}>New alias for version {version}</label>
      <span className="wf-add">
        <input
          id={id}
          value={text}
          placeholder="stable"
          autoComplete="off"
          aria-invalid={wrong !== null}
          aria-describedby={wrong ? `${id}-wrong` : undefined}
          onChange={(event) => setText(event.target.value)}
        />
        <Button type="submit" icon={Plus}>
          Add
        </Button>
      </span>
      {wrong && (
        <span id={`${id}-wrong`} className="field-error" role="alert">
          {wrong}
        </span>
      )}
    </form>
  );
}
