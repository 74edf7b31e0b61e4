import { Check, Copy, Inbox, type LucideIcon, TriangleAlert } from 'lucide-react';
import { type ButtonHTMLAttributes, type ReactNode, useEffect, useState } from 'react';
import { messageOf, Problem } from '../api/problem';
import { iconOf, stateClass } from '../states';
import { agoText, durationText, localText, useNow, utcText } from '../time';

export function Page({ title, actions, children }: { title: ReactNode; actions?: ReactNode; children: ReactNode }) {
  return (
    <div className="page">
      <header className="page-head">
        <h1>{title}</h1>
        {actions && <div className="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Names the browser's tab after what it shows. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Penstock` : 'Penstock';
  }, [title]);
}

type CardProps = { title?: ReactNode; actions?: ReactNode; className?: string; children: ReactNode };

export function Card({ title, actions, className = '', children }: CardProps) {
  return (
    <section className={`card ${className}`}>
      {(title || actions) && (
        <header className="card-head">
          {title && <h2>{title}</h2>}
          {actions && <div className="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  kind?: 'plain' | 'primary' | 'danger' | 'quiet';
  icon?: LucideIcon;
  busy?: boolean;
};

export function Button({ kind = 'plain', icon: Icon, busy = false, className = '', children, ...rest }: ButtonProps) {
  return (
    <button type="button" className={`button ${kind} ${className}`} disabled={busy} aria-busy={busy} {...rest}>
      {Icon && <Icon size={16} aria-hidden="true" />}
      {children && <span>{children}</span>}
    </button>
  );
}

export function StateIcon({ state, size = 14 }: { state: string; size?: number }) {
  const Icon = iconOf(state);
  return <Icon size={size} aria-hidden="true" className={state === 'RUNNING' ? 'turns' : undefined} />;
}

export function StateBadge({ state }: { state: string }) {
  return (
    <span className={`badge ${stateClass(state)}`}>
      <StateIcon state={state} size={13} />
      {state}
    </span>
  );
}

/** A moment as time ago; in the viewer's zone and in UTC on hover. */
export function Time({ at, exact = false }: { at: string | null | undefined; exact?: boolean }) {
  const now = useNow(at && !exact ? 10_000 : 0);
  if (!at) return <span className="faint">–</span>;
  return (
    <time dateTime={at} title={`${localText(at)}\n${utcText(at)}`}>
      {exact ? localText(at) : agoText(at, now)}
    </time>
  );
}

/** How long it took; counts on while it has no end. */
export function Elapsed({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  const now = useNow(from && !to ? 500 : 0);
  if (!from) return <span className="faint">–</span>;
  const end = to ? Date.parse(to) : Math.max(now, Date.parse(from));
  return <span className="number">{durationText((end - Date.parse(from)) / 1000)}</span>;
}

export function Id({ children }: { children: string }) {
  return (
    <code className="id" title={children}>
      {children}
    </code>
  );
}

export function CopyButton({ text, label = 'Copy' }: { text: string | (() => string); label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <Button
      kind="quiet"
      icon={done ? Check : Copy}
      onClick={copy}
      aria-label={done ? 'Copied' : label}
      title={done ? 'Copied' : label}
    />
  );
}

export function Loading({ what = 'Loading' }: { what?: string }) {
  return (
    <p className="loading" role="status">
      {what} …
    </p>
  );
}

export function Empty({
  title,
  children,
  icon: Icon = Inbox,
}: {
  title: string;
  children?: ReactNode;
  icon?: LucideIcon;
}) {
  return (
    <div className="empty">
      <Icon size={28} aria-hidden="true" />
      <p className="empty-title">{title}</p>
      {children && <div className="faint">{children}</div>}
    </div>
  );
}

export function ErrorBox({ error, retry }: { error: unknown; retry?: () => void }) {
  const problems = error instanceof Problem ? error.problems : [];
  return (
    <div className="error-box" role="alert">
      <TriangleAlert size={18} aria-hidden="true" />
      <div>
        <p>{messageOf(error)}</p>
        {problems.length > 0 && (
          <ul>
            {problems.slice(0, 20).map((each) => (
              <li key={`${each.path}${each.code}${each.message}`}>
                {each.path && <code>{each.path}</code>} {each.message}
              </li>
            ))}
          </ul>
        )}
      </div>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

type Loadable<T> = { data: T | undefined; error: unknown; refetch: () => unknown };

/** What was asked for, or how far that is. What is there stays while it is read again. */
export function Loaded<T>({
  query,
  what,
  children,
}: {
  query: Loadable<T>;
  what?: string;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <ErrorBox error={query.error} retry={() => void query.refetch()} />;
  return <Loading what={what} />;
}
