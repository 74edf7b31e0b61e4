import { useMutation, useQueryClient } from '@tanstack/react-query';
import { ArrowRightLeft, Plus, Trash2 } from 'lucide-react';
import { type FormEvent, useId, useState } from 'react';
import { removeAlias, setAlias } from '../../api/calls';
import { Button } from '../../components/basics';
import { Confirm, Dialog } from '../../components/dialog';
import { toast, toastError } from '../../components/toasts';
import { type Aliases, LATEST, meaning, names, wrongAlias } from './aliases';

type DialogProps = { name: string; version: number; aliases: Aliases; onClose: () => void };
type Asked = { what: 'move' | 'remove'; alias: string };

/** Where the workflow's aliases point, and how to change that. */
export function AliasDialog({ name, version, aliases, onClose }: DialogProps) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const others = names(aliases).filter((alias) => alias !== LATEST);
  if (asked) {
    const weights = aliases[asked.alias];
    return (
      <Change
        key={asked.alias}
        {...asked}
        name={name}
        version={version}
        now={weights ? meaning(weights) : null}
        onBack={() => setAsked(null)}
      />
    );
  }
  return (
    <Dialog title={`Aliases of ${name}`} onClose={onClose}>
      <p className="faint">
        <code>
          {name}@{others[0] ?? 'stable'}
        </code>{' '}
        can be used wherever a workflow is named. <code>latest</code> moves by itself.
      </p>
      {others.length > 0 && (
        <ul className="wf-aliases">
          {others.map((alias) => {
            const means = meaning(aliases[alias] ?? {});
            return (
              <li key={alias}>
                <span className="tag wf-alias">{alias}</span>
                <span className="faint">version {means}</span>
                <span className="spacer" />
                {means !== String(version) && (
                  <Button icon={ArrowRightLeft} onClick={() => setAsked({ what: 'move', alias })}>
                    Move to {version}
                  </Button>
                )}
                <Button
                  kind="quiet"
                  icon={Trash2}
                  aria-label={`Remove the alias ${alias}`}
                  title={`Remove the alias ${alias}`}
                  onClick={() => setAsked({ what: 'remove', alias })}
                />
              </li>
            );
          })}
        </ul>
      )}
      <AddAlias version={version} aliases={aliases} onAdd={(alias) => setAsked({ what: 'move', alias })} />
    </Dialog>
  );
}

type AddProps = { version: number; aliases: Aliases; onAdd: (alias: string) => void };

function AddAlias({ version, aliases, onAdd }: AddProps) {
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

type ChangeProps = Asked & { name: string; version: number; now: string | null; onBack: () => void };

function Change({ what, alias, name, version, now, onBack }: ChangeProps) {
  const queries = useQueryClient();
  const changing = useMutation<unknown>({
    mutationFn: () => (what === 'move' ? setAlias(name, alias, version) : removeAlias(name, alias)),
    onSuccess: () => {
      toast(what === 'move' ? `${name}@${alias} is version ${version}` : `The alias ${alias} is removed`);
      void queries.invalidateQueries({ queryKey: ['workflows'] });
      onBack();
    },
    onError: toastError,
  });
  const title = what === 'remove' ? `Remove the alias ${alias}?` : now ? `Move ${alias}?` : `Add the alias ${alias}?`;
  const action = what === 'remove' ? 'Remove' : now ? `Move to ${version}` : 'Add';
  return (
    <Confirm
      title={title}
      action={action}
      danger={what === 'remove'}
      busy={changing.isPending}
      onConfirm={() => changing.mutate()}
      onClose={onBack}
    >
      {what === 'remove' ? (
        <p>
          Whoever starts{' '}
          <code>
            {name}@{alias}
          </code>{' '}
          is refused from then on. Executions go on.
        </p>
      ) : (
        <p>
          <code>
            {name}@{alias}
          </code>{' '}
          {now ? `means version ${now} now, and version ${version} from then on.` : `will mean version ${version}.`}{' '}
          Executions under way keep theirs.
        </p>
      )}
    </Confirm>
  );
}
