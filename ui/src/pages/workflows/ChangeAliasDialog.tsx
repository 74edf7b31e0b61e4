import { useMutation, useQueryClient } from '@tanstack/react-query';
import { removeAlias, setAlias } from '../../api/calls';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { toast, toastError } from '../../components/toast';

export type AliasChange = { what: 'move' | 'remove'; alias: string };

type ChangeProps = AliasChange & {
  name: string;
  version: number;
  now: string | null;
  onBack: () => void;
};

export function ChangeAliasDialog({ what, alias, name, version, now, onBack }: ChangeProps) {
  const queries = useQueryClient();
  const changing = useMutation<unknown>({
    mutationFn: () => (what === 'move' ? setAlias(name, alias, version) : removeAlias(name, alias)),
    onSuccess: () => {
      if (what === 'move') toast(`${name}@${alias} now means version ${version}`);
      else toast(`The alias ${alias} has been removed`);
      void queries.invalidateQueries({ queryKey: ['workflows'] });
      onBack();
    },
    onError: toastError,
  });
  const { title, action } = wordingOf(what, alias, version, now);
  return (
    <ConfirmDialog
      title={title}
      action={action}
      danger={what === 'remove'}
      busy={changing.isPending}
      onConfirm={() => changing.mutate()}
      onClose={onBack}
    >
      {what === 'remove' ? (
        <p>
          Requests for{' '}
          <code>
            {name}@{alias}
          </code>{' '}
          will be refused. Running executions continue.
        </p>
      ) : (
        <p>
          <code>
            {name}@{alias}
          </code>{' '}
          {now
            ? `means version ${now} now, and will mean version ${version}.`
            : `will mean version ${version}.`}{' '}
          Running executions keep their version.
        </p>
      )}
    </ConfirmDialog>
  );
}

function wordingOf(what: AliasChange['what'], alias: string, version: number, now: string | null) {
  if (what === 'remove') return { title: `Remove the alias ${alias}?`, action: 'Remove' };
  if (now) return { title: `Move ${alias}?`, action: `Move to ${version}` };
  return { title: `Add the alias ${alias}?`, action: 'Add' };
}
