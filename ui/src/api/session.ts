// Who uses the page: an API key, where the service wants one. It is kept for this tab, or on this device if asked for;
// the page's CSP lets no foreign script read it.
import { useSyncExternalStore } from 'react';

export type Scope = 'read' | 'submit' | 'operate' | 'admin';
export type Me = { open: boolean; key_id: string | null; name: string | null; scopes: Scope[] };

type Session = { key: string | null; me: Me | null; needsKey: boolean };

const NAME = 'penstock.key';
let session: Session = { key: stored(), me: null, needsKey: false };
const listeners = new Set<() => void>();

function stored(): string | null {
  return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME);
}

function change(next: Partial<Session>): void {
  session = { ...session, ...next };
  for (const listener of listeners) listener();
}

export function currentKey(): string | null {
  return session.key;
}

export function signIn(key: string, keep: boolean): void {
  (keep ? localStorage : sessionStorage).setItem(NAME, key);
  change({ key, needsKey: false, me: null });
}

export function signOut(): void {
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
  change({ key: null, me: null, needsKey: true });
}

/** The server has refused the key, or wants one. */
export function keyRefused(): void {
  if (!session.needsKey) signOut();
}

export function signedInAs(me: Me): void {
  change({ me, needsKey: false });
}

export function useSession(): Session {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => session,
  );
}

/** Whether to offer it; the server decides again. */
export function useMay(scope: Scope): boolean {
  return useSession().me?.scopes.includes(scope) ?? false;
}
