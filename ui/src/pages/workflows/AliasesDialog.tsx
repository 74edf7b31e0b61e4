import { ArrowRightLeft, Trash2 } from 'lucide-react';
import { useState } from 'react';
import type { Aliases } from '../../api/calls';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { AddAliasForm } from './AddAliasForm';
import { LATEST, meaning, names } from './aliases';
import { type AliasChange, ChangeAliasDialog } from './ChangeAliasDialog';

type DialogProps = { name: string; version: number; aliases: Aliases; onClose: () => void };

/** Where the workflow's aliases point, and how to change that. */
export function AliasesDialog({ name, version, aliases, onClose }: DialogProps) {
  const [asked, setAsked] = useState<AliasChange | null>(null);
  const others = names(aliases).filter((alias) => alias !== LATEST);
  if (asked) {
    const weights = aliases[asked.alias];
    return (
      <ChangeAliasDialog
        key={asked.alias}
        {...asked}
        name={name}
        version={version}
        now={weights ? meaning(weights) : null}
        onBack={() => setAsked(null)}
      />
    );
  }
  return (
    <Dialog title={`Aliases of ${name}`} onClose={onClose}>
      <p className="faint">
        <code>
          {name}@{others[0] ?? 'stable'}
        </code>{' '}
        can be used wherever a workflow is named. <code>latest</code> moves by itself.
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
                  <Button icon={ArrowRightLeft} onClick={() => setAsked({ what: 'move', alias })}>
                    Move to {version}
                  </Button>
                )}
                <Button
                  kind="quiet"
                  icon={Trash2}
                  aria-label={`Remove the alias ${alias}`}
                  title={`Remove the alias ${alias}`}
                  onClick={() => setAsked({ what: 'remove', alias })}
                />
              </li>
            );
          })}
        </ul>
      )}
      <AddAliasForm version={version} aliases={aliases} onAdd={(alias) => setAsked({ what: 'move', alias })} />
    </Dialog>
  );
}
