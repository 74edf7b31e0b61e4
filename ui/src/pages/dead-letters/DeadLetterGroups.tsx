import { useMemo } from 'react';
import type { DeadLetter } from '../../api/calls';
import { TriStateCheckbox } from '../../components/TriStateCheckbox';
import { useQueryString } from '../../routing/useQueryString';
import type { DeadLetterActions } from './actions';
import { DeadLetterGroupRow } from './DeadLetterGroupRow';
import { groupsOf, openIds, shortKey } from './groups';
import { counted, howMany } from './selection';

type ListProps = { letters: DeadLetter[]; actions: DeadLetterActions; partial: boolean };

/** Dead letters, grouped by error. The address says which groups are open. */
export function DeadLetterGroups({ letters, actions, partial }: ListProps) {
  const [query, change] = useQueryString();
  const groups = useMemo(() => groupsOf(letters), [letters]);
  const opened = query.getAll('group');
  const ids = openIds(letters);
  const toggle = (name: string) => {
    const group = opened.includes(name)
      ? opened.filter((other) => other !== name)
      : [...opened, name];
    change({ group }, { replace: true });
  };
  return (
    <>
      <div className="dead-letters-summary">
        {actions.mayOperate && ids.length > 0 && (
          <TriStateCheckbox
            state={howMany(actions.chosen, ids)}
            label="Select all shown"
            onChange={(on) => actions.onChoose(ids, on)}
          />
        )}
        <span className="faint" role="status">
          {counted(letters.length, 'dead letter')}
          {partial && ' so far'}, {counted(groups.length, 'different error')}
        </span>
      </div>
      <ul className="dead-letters-groups">
        {groups.map((group) => {
          const name = shortKey(group.key);
          return (
            <DeadLetterGroupRow
              key={group.key}
              group={group}
              isOpen={opened.includes(name)}
              onToggle={() => toggle(name)}
              actions={actions}
            />
          );
        })}
      </ul>
    </>
  );
}
