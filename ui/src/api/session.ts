// Who uses the UI: an API key, where the service requires one. The key is stored for this tab, or
// on this device if the user asks for that; the UI's CSP lets no foreign script read it.

import type { Me } from './calls';

export type Session = { key: string | null; me: Me | null; needsKey: boolean };

const NAME = 'penstock.key';
let session: Session = { key: storedKey(), me: null, needsKey: false };
const listeners = new Set<() => void>();

function storedKey(): string | null {
  return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME);
}

export function currentSession(): Session {
  return session;
}

export function subscribeToSession(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changeSession(next: Partial<Session>): void {
  session = { ...session, ...next };
  for (const listener of listeners) listener();
}

export function currentKey(): string | null {
  return session.key;
}

export function signIn(key: string, staySignedIn: boolean): void {
  const storage = staySignedIn ? localStorage : sessionStorage;
  storage.setItem(NAME, key);
  changeSession({ key, needsKey: false, me: null });
}

export function signOut(): void {
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
  changeSession({ key: null, me: null, needsKey: true });
}

/** The server has refused the key, or requires one. */
export function keyRefused(): void {
  if (!session.needsKey) signOut();
}

export function signedInAs(me: Me): void {
  changeSession({ me, needsKey: false });
}
