// The address is the page's state: which page, which filters, which node. Whatever is looked at can be sent as a link.
import { type AnchorHTMLAttributes, type MouseEvent, useCallback, useMemo, useSyncExternalStore } from 'react';

const BASE = '/ui';
const listeners = new Set<() => void>();
window.addEventListener('popstate', tell);

function tell(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function navigate(to: string, { replace = false } = {}): void {
  const target = BASE + to;
  if (target === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', target);
  else history.pushState(null, '', target);
  tell();
}

/** The parts of the path behind /ui, decoded: a name may have slashes in it. */
export function usePath(): string[] {
  const path = useSyncExternalStore(subscribe, () => location.pathname);
  return useMemo(() => path.slice(BASE.length).split('/').filter(Boolean).map(decodeURIComponent), [path]);
}

export type Changes = Record<string, string | string[] | null | undefined>;

/** The query of the address, and how to change a part of it. */
export function useQueryString(): [URLSearchParams, (changes: Changes, how?: { replace?: boolean }) => void] {
  const search = useSyncExternalStore(subscribe, () => location.search);
  const query = useMemo(() => new URLSearchParams(search), [search]);
  const change = useCallback((changes: Changes, how: { replace?: boolean } = {}) => {
    const path = location.pathname.slice(BASE.length);
    navigate(path + queryString(changes, new URLSearchParams(location.search)), how);
  }, []);
  return [query, change];
}

/** `?a=1&b=2`, or nothing. An empty value leaves its name out. */
export function queryString(changes: Changes, from = new URLSearchParams()): string {
  for (const [name, value] of Object.entries(changes)) {
    from.delete(name);
    for (const each of Array.isArray(value) ? value : [value]) if (each) from.append(name, each);
  }
  const text = from.toString();
  return text ? `?${text}` : '';
}

export const paths = {
  overview: () => '/',
  executions: (filters: Changes = {}) => `/executions${queryString(filters)}`,
  execution: (id: string, more: Changes = {}) => `/executions/${encodeURIComponent(id)}${queryString(more)}`,
  workflows: () => '/workflows',
  workflow: (name: string, more: Changes = {}) => `/workflows/${encodeURIComponent(name)}${queryString(more)}`,
  deadLetters: (filters: Changes = {}) => `/dead-letters${queryString(filters)}`,
  workers: () => '/workers',
};

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string };

export function Link({ to, onClick, ...rest }: LinkProps) {
  const go = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={BASE + to} onClick={go} {...rest} />;
}
