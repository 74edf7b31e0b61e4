import { LogOut } from 'lucide-react';
import { signOut } from '../api/session';
import { useSession } from '../api/useSession';
import { Button } from '../components/Button';

export function SignedInKey() {
  const { me, key } = useSession();
  if (!key || !me) return null;
  return (
    <>
      <span className="who" title={`API key ${me.key_id ?? ''}: ${me.scopes.join(', ')}`}>
        {me.name ?? me.key_id}
      </span>
      <Button kind="quiet" icon={LogOut} aria-label="Sign out" title="Sign out" onClick={signOut} />
    </>
  );
}
