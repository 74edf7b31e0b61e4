import type { ReactNode } from 'react';
import { Button } from './Button';
import { Dialog } from './Dialog';

type ConfirmProps = {
  title: string;
  children: ReactNode;
  action: string;
  danger?: boolean;
  busy?: boolean;
  onConfirm: () => void;
  onClose: () => void;
};

export function ConfirmDialog({
  title,
  children,
  action,
  danger = false,
  busy = false,
  onConfirm,
  onClose,
}: ConfirmProps) {
  const buttons = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind={danger ? 'danger' : 'primary'} busy={busy} onClick={onConfirm}>
        {action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} onClose={onClose} actions={buttons}>
      {children}
    </Dialog>
  );
}
