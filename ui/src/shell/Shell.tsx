import {
  Boxes,
  ClipboardCheck,
  Gauge,
  KeyRound,
  ListTree,
  MailWarning,
  ScrollText,
  Search,
  Server,
  WifiOff,
} from 'lucide-react';
import type { ReactNode } from 'react';
import { useReachable } from '../api/useReachable';
import { useSession } from '../api/useSession';
import { PaletteButton } from '../palette/PaletteButton';
import { Link } from '../routing/Link';
import { BASE } from '../routing/navigation';
import { paths } from '../routing/paths';
import { usePath } from '../routing/usePath';
import { ApprovalsBadge } from './ApprovalsBadge';
import { SignedInKey } from './SignedInKey';
import { ThemeButton } from './ThemeButton';

const SECTIONS = [
  { to: paths.overview(), id: undefined, label: 'Overview', icon: Gauge },
  { to: paths.executions(), id: 'executions', label: 'Executions', icon: ListTree },
  { to: paths.workflows(), id: 'workflows', label: 'Workflows', icon: Boxes },
  { to: paths.deadLetters(), id: 'dead-letters', label: 'Dead letters', icon: MailWarning },
  { to: paths.approvals(), id: 'approvals', label: 'Approvals', icon: ClipboardCheck },
  { to: paths.workers(), id: 'workers', label: 'Workers', icon: Server },
  { to: paths.search(), id: 'search', label: 'Search', icon: Search },
];
const ADMIN_SECTIONS = [
  { to: paths.apiKeys(), id: 'api-keys', label: 'API keys', icon: KeyRound, scope: 'admin' },
  { to: paths.audit(), id: 'audit', label: 'Audit log', icon: ScrollText, scope: 'operate' },
] as const;
/** Pages that belong to a section of another name. */
const SECTION_OF: Record<string, string> = { edit: 'workflows', compare: 'executions' };

export function Shell({ children }: { children: ReactNode }) {
  const [page] = usePath();
  const section = page === undefined ? page : (SECTION_OF[page] ?? page);
  const scopes: readonly string[] = useSession().me?.scopes ?? [];
  const sections = [...SECTIONS, ...ADMIN_SECTIONS.filter(({ scope }) => scopes.includes(scope))];
  const reachable = useReachable();
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <nav className="side" aria-label="Sections">
        <Link to={paths.overview()} className="brand" aria-label="Penstock, overview">
          <img src={`${BASE}/icon.svg`} alt="" width="26" height="26" />
          <span>Penstock</span>
        </Link>
        <PaletteButton />
        <ul>
          {sections.map(({ to, id, label, icon: Icon }) => (
            <li key={label}>
              <Link
                to={to}
                className="section"
                aria-current={section === id ? 'page' : undefined}
                title={label}
              >
                <Icon size={18} aria-hidden="true" />
                <span>{label}</span>
                {id === 'approvals' && <ApprovalsBadge />}
              </Link>
            </li>
          ))}
        </ul>
        <div className="side-foot">
          <ThemeButton />
          <SignedInKey />
        </div>
      </nav>
      <main id="content" tabIndex={-1}>
        {!reachable && (
          <p className="away" role="alert">
            <WifiOff size={16} aria-hidden="true" /> The server can't be reached. What you see may
            be out of date. The UI reconnects by itself.
          </p>
        )}
        {children}
      </main>
    </div>
  );
}
