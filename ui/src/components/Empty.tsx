import { Inbox, type LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';

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
