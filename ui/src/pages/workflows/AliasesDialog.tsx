import { ArrowRightLeft, Trash2 } from 'lucide-react';
import { useState } from 'react';
import type { Aliases } from '../../api/calls';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { AddAliasForm } from './AddAliasForm';
import { LATEST, meaning, names } from './aliases';
import { type AliasChange, ChangeAliasDialog } from './ChangeAliasDialog';

type DialogProps = { name: string; version: number; aliases: Aliases; onClose: () => void };

/** The workflow's aliases, with buttons that add, move and remove them. */
export function AliasesDialog({ name, version, aliases, onClose }: DialogProps) {
  const [aliasChange, setAliasChange] = useState<AliasChange | null>(null);
  const others = names(aliases).filter((alias) => alias !== LATEST);
  if (aliasChange) {
    const weights = aliases[aliasChange.alias];
    return (
      <ChangeAliasDialog
        key={aliasChange.alias}
        {...aliasChange}
        name={name}
        version={version}
        now={weights ? meaning(weights) : null}
        onBack={() => setAliasChange(null)}
      />
    );
  }
  return (
    <Dialog title={`Aliases of ${name}`} onClose={onClose}>
      <p className="faint">
        Use{' '}
        <code>
          {name}@{others[0] ?? 'stable'}
        </code>{' '}
        wherever you name a workflow. <code>latest</code> always means the newest version.
      </p>
      {others.length > 0 && (
        <ul className="wf-aliases">
          {others.map((alias) => {
            const means = meaning(aliases[alias] ?? {});
            return (
              <li key={alias}>
                <span className="tag wf-alias">{alias}</span>
                <span className="faint">version {means}</span>
                <span className="spacer" />
                {means !== String(version) && (
                  <Button
                    icon={ArrowRightLeft}
                    onClick={() => setAliasChange({ what: 'move', alias })}
                  >
                    Move to {version}
                  </Button>
                )}
                <Button
                  kind="quiet"
                  icon={Trash2}
                  aria-label={`Remove the alias ${alias}`}
                  title={`Remove the alias ${alias}`}
                  onClick={() => setAliasChange({ what: 'remove', alias })}
                />
              </li>
            );
          })}
        </ul>
      )}
      <AddAliasForm
        version={version}
        aliases={aliases}
        onAdd={(alias) => setAliasChange({ what: 'move', alias })}
      />
    </Dialog>
  );
}
