import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useId, useState } from 'react';
import { createKey, type Scope } from '../../api/calls';
import { signIn } from '../../api/session';
import { useSession } from '../../api/useSession';
import { Button } from '../../components/Button';
import { CopyButton } from '../../components/CopyButton';
import { Dialog } from '../../components/Dialog';
import { ErrorBox } from '../../components/ErrorBox';

const SCOPES: { id: Scope; allows: string }[] = [
  { id: 'read', allows: 'view everything except the audit log and the keys' },
  { id: 'submit', allows: 'also start executions' },
  { id: 'operate', allows: 'also store workflows, and cancel, pause and retry executions' },
  { id: 'admin', allows: 'also create and revoke keys' },
];

/** Creates a key, and shows it once. */
export function CreateKeyDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const { me } = useSession();
  const [name, setName] = useState('');
  const [scope, setScope] = useState<Scope>('submit');
  const id = useId();
  const isOpen = me?.open ?? false;
  const creating = useMutation({ mutationFn: () => createKey(name.trim(), [scope]) });
  const created = creating.data;
  const close = () => {
    onClose();
    // From the first key on every request needs one: go on with this one, if it may do that.
    if (created && isOpen && scope === 'admin') signIn(created.key, false);
    void queries.invalidateQueries({ queryKey: created && isOpen ? [] : ['keys'] });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    creating.mutate();
  };
  if (created) {
    return (
      <Dialog title="The new key" onClose={close} actions={<Button onClick={close}>Done</Button>}>
        <p>Copy it now. It is shown only this once.</p>
        <p className="admin-key">
          <code>{created.key}</code>
          <CopyButton text={created.key} label="Copy the key" />
        </p>
      </Dialog>
    );
  }
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <form className="admin-form" onSubmit={submit}>
        <label className="field">
          Name
          <input
            value={name}
            maxLength={200}
            placeholder="such as billing"
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <fieldset className="admin-scopes">
          <legend>Scope: this key may …</legend>
          {SCOPES.map(({ id: choice, allows }) => (
            <label key={choice} className="check" htmlFor={`${id}-${choice}`}>
              <input
                id={`${id}-${choice}`}
                type="radio"
                name={id}
                checked={scope === choice}
                onChange={() => setScope(choice)}
              />
              <span>
                <strong>{choice}</strong> {allows}
              </span>
            </label>
          ))}
        </fieldset>
        {isOpen && (
          <p className="admin-note">
            {scope === 'admin'
              ? 'From this key on, every request needs a key. You are signed in with it.'
              : 'From this key on, every request needs a key. Create one with the scope admin first, or you can’t manage keys here any more.'}
          </p>
        )}
        {creating.error && <ErrorBox error={creating.error} />}
        <footer className="dialog-actions">
          <Button onClick={onClose}>Back</Button>
          <Button kind="primary" type="submit" disabled={!name.trim()} busy={creating.isPending}>
            Create
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
