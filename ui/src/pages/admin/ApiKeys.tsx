import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { type ApiKey, listKeys, revokeKey } from '../../api/calls';
import { useSession } from '../../api/useSession';
import { Button } from '../../components/Button';
import { Card } from '../../components/Card';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { Empty } from '../../components/Empty';
import { Loaded } from '../../components/Loaded';
import { Page } from '../../components/Page';
import { Time } from '../../components/Time';
import { toast, toastError } from '../../components/toast';
import { useTitle } from '../../components/useTitle';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import { CreateKeyDialog } from './CreateKeyDialog';
import './admin.css';

/** API keys: who may do what, without the secrets. */
export default function ApiKeys() {
  useTitle('API keys');
  const queries = useQueryClient();
  const { me } = useSession();
  const [isCreating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const keys = useQuery({ queryKey: ['keys'], queryFn: listKeys });
  const revocation = useMutation({
    mutationFn: (key: ApiKey) => revokeKey(key.id),
    onSuccess: (_, key) => toast(`${key.name || key.id} is revoked`),
    onError: toastError,
    onSettled: () => {
      setRevoking(null);
      void queries.invalidateQueries({ queryKey: ['keys'] });
    },
  });
  return (
    <Page
      title="API keys"
      actions={
        <Button kind="primary" icon={Plus} onClick={() => setCreating(true)}>
          Create a key
        </Button>
      }
    >
      <Card>
        <Loaded query={keys}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="There is no API key yet" icon={KeyRound}>
                On this machine the service is open. As soon as there is a key, every request needs
                one.
              </Empty>
            ) : (
              <div className="table-wrap">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Name</th>
                      <th scope="col">Id</th>
                      <th scope="col">Scopes</th>
                      <th scope="col">Created</th>
                      <th scope="col">Revoked</th>
                      <th scope="col">
                        <span className="visually-hidden">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((key) => (
                      <tr key={key.id}>
                        <td>{key.name}</td>
                        <td>
                          <Link to={paths.audit({ key: key.id })} title="What this key has done">
                            <code>{key.id}</code>
                          </Link>
                        </td>
                        <td>{key.scopes.join(', ')}</td>
                        <td>
                          <Time at={key.created_at} />
                        </td>
                        <td>
                          <Time at={key.revoked_at} />
                        </td>
                        <td className="right">
                          {!key.revoked_at && (
                            <Button
                              kind="danger"
                              aria-label={`Revoke ${key.name || key.id}`}
                              onClick={() => setRevoking(key)}
                            >
                              Revoke
                            </Button>
                          )}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Loaded>
      </Card>
      {isCreating && <CreateKeyDialog onClose={() => setCreating(false)} />}
      {revoking && (
        <ConfirmDialog
          title={`Revoke ${revoking.name || revoking.id}?`}
          action="Revoke the key"
          danger
          busy={revocation.isPending}
          onConfirm={() => revocation.mutate(revoking)}
          onClose={() => setRevoking(null)}
        >
          <p>
            Requests with this key are refused from now on. This can't be undone.
            {revoking.id === me?.key_id && ' It is the key that you are signed in with.'}
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
