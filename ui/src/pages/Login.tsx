import { KeyRound } from 'lucide-react';
import { type FormEvent, useState } from 'react';
import { getMeByKey } from '../api/calls';
import { messageOf, Problem } from '../api/problem';
import { signedInAs, signIn } from '../api/session';
import { Button } from '../components/Button';
import { useTitle } from '../components/useTitle';

export function Login() {
  useTitle('Sign in');
  const [key, setKey] = useState('');
  const [keep, setKeep] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const me = await getMeByKey(key.trim());
      signIn(key.trim(), keep);
      signedInAs(me);
    } catch (error) {
      setRefused(
        error instanceof Problem && error.status === 401
          ? "This key isn't known here, or was revoked."
          : messageOf(error),
      );
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="login">
      <form className="card" onSubmit={submit}>
        <img src="/ui/icon.svg" alt="" width="44" height="44" />
        <h1>Sign in to Penstock</h1>
        <label>
          API key
          <input
            type="password"
            autoComplete="current-password"
            required
            value={key}
            aria-invalid={refused !== null}
            aria-describedby="login-help"
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        {refused && (
          <p className="refused" role="alert">
            {refused}
          </p>
        )}
        <label className="check">
          <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.target.checked)} />
          Keep me signed in on this device
        </label>
        <Button kind="primary" type="submit" icon={KeyRound} busy={busy}>
          Sign in
        </Button>
        <p id="login-help" className="faint">
          Whoever runs this service makes keys: <code>penstock keys create --scope operate</code>. A key with the scope{' '}
          <code>read</code> may look, <code>submit</code> also start, <code>operate</code> also steer and retry.
        </p>
      </form>
    </main>
  );
}
