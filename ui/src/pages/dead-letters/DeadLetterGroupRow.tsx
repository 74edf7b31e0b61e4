import { ChevronDown, ChevronRight, RotateCw, Trash2 } from 'lucide-react';
import { useId } from 'react';
import { Button } from '../../components/Button';
import { Time } from '../../components/Time';
import { TriStateCheckbox } from '../../components/TriStateCheckbox';
import { Link } from '../../routing/Link';
import { paths } from '../../routing/paths';
import type { DeadLetterActions } from './actions';
import { DeadLetterTable } from './DeadLetterTable';
import { type Group, openIds } from './groups';
import { counted, howMany } from './selection';

type GroupProps = {
  group: Group;
  isOpen: boolean;
  onToggle: () => void;
  actions: DeadLetterActions;
};

export function DeadLetterGroupRow({ group, isOpen, onToggle, actions }: GroupProps) {
  const { mayOperate, chosen, onChoose, onRetry, onDrop } = actions;
  const panel = useId();
  const ids = openIds(group.letters);
  const open = group.letters.filter((letter) => letter.closed === null);
  const closed = group.letters.length - open.length;
  const Icon = isOpen ? ChevronDown : ChevronRight;
  return (
    <li className="card dead-letters-group">
      <div className="dead-letters-group-head">
        {mayOperate && (
          <TriStateCheckbox
            state={howMany(chosen, ids)}
            disabled={ids.length === 0}
            label={`Select all of: ${group.message.slice(0, 80)}`}
            onChange={(on) => onChoose(ids, on)}
          />
        )}
        <div className="dead-letters-group-what">
          <button
            type="button"
            className="dead-letters-toggle"
            aria-expanded={isOpen}
            aria-controls={isOpen ? panel : undefined}
            onClick={onToggle}
          >
            <Icon size={16} aria-hidden="true" />
            <span className="dead-letters-message">{group.message}</span>
          </button>
          <GroupOrigin group={group} />
        </div>
        <div className="dead-letters-group-side">
          <span className="number">
            <strong>{counted(open.length, 'dead letter')}</strong>
            {closed > 0 && <span className="faint">{` + ${closed.toLocaleString()} closed`}</span>}
          </span>
          <span className="faint">
            <Time at={group.newest} />
          </span>
        </div>
        {mayOperate && (
          <div className="actions dead-letters-group-actions">
            <Button icon={RotateCw} disabled={open.length === 0} onClick={() => onRetry(open)}>
              Retry
            </Button>
            <Button
              kind="danger"
              icon={Trash2}
              disabled={open.length === 0}
              onClick={() => onDrop(open)}
            >
              Drop
            </Button>
          </div>
        )}
      </div>
      {isOpen && (
        <div id={panel} className="dead-letters-panel">
          <DeadLetterTable letters={group.letters} actions={actions} />
        </div>
      )}
    </li>
  );
}

function GroupOrigin({ group }: { group: Group }) {
  return (
    <p className="dead-letters-where">
      <span className="tag">{group.category}</span>
      <span>
        <Link to={paths.workflow(group.workflow)}>{group.workflow}</Link>
        <span className="faint"> › </span>
        <code>{group.nodeId}</code>
      </span>
      {group.handler !== group.nodeId && (
        <span className="faint">
          handler <code>{group.handler}</code>
        </span>
      )}
    </p>
  );
}
