import type { LucideIcon } from 'lucide-react';
import type { ButtonHTMLAttributes } from 'react';

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  kind?: 'plain' | 'primary' | 'danger' | 'quiet';
  icon?: LucideIcon;
  busy?: boolean;
};

export function Button({
  kind = 'plain',
  icon: Icon,
  busy = false,
  className = '',
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      className={`button ${kind} ${className}`}
      disabled={busy}
      aria-busy={busy}
      {...rest}
    >
      {Icon && <Icon size={16} aria-hidden="true" />}
      {children && <span>{children}</span>}
    </button>
  );
}
