import { KeyRound } from 'lucide-react';
import { type FormEvent, useState } from 'react';
import { getMeByKey } from '../api/calls';
import { messageOf, Problem } from '../api/problem';
import { signedInAs, signIn } from '../api/session';
import { Button } from '../components/Button';
import { useTitle } from '../components/useTitle';
import { BASE } from '../routing/navigation';

export function Login() {
  useTitle('Sign in');
  const [key, setKey] = useState('');
  const [staySignedIn, setStaySignedIn] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const me = await getMeByKey(key.trim());
      signIn(key.trim(), staySignedIn);
      signedInAs(me);
    } catch (error) {
      setRefusal(
        error instanceof Problem && error.status === 401
          ? 'This key is unknown or has been revoked.'
          : messageOf(error),
      );
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="login">
      <form className="card" onSubmit={submit}>
        <img src={`${BASE}/icon.svg`} alt="" width="44" height="44" />
        <h1>Sign in to Penstock</h1>
        <label>
          API key
          <input
            type="password"
            autoComplete="current-password"
            required
            value={key}
            aria-invalid={refusal !== null}
            aria-describedby="login-help"
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        {refusal && (
          <p className="refused" role="alert">
            {refusal}
          </p>
        )}
        <label className="check">
          <input
            type="checkbox"
            checked={staySignedIn}
            onChange={(event) => setStaySignedIn(event.target.checked)}
          />
          Keep me signed in on this device
        </label>
        <Button kind="primary" type="submit" icon={KeyRound} busy={busy}>
          Sign in
        </Button>
        <p id="login-help" className="faint">
          The operator of this service creates keys:{' '}
          <code>penstock keys create --scope operate</code>. A key with the scope <code>read</code>{' '}
          can view. With <code>submit</code> it can also start executions, and with{' '}
          <code>operate</code> also control and retry them.
        </p>
      </form>
    </main>
  );
}
