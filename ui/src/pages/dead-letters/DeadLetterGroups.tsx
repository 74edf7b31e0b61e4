import { useMemo } from 'react';
import type { DeadLetter } from '../../api/calls';
import { TriStateCheckbox } from '../../components/TriStateCheckbox';
import { useQueryString } from '../../routing/useQueryString';
import type { DeadLetterActions } from './actions';
import { DeadLetterGroupRow } from './DeadLetterGroupRow';
import { groupsOf, openIds, shortKey } from './groups';
import { counted, howMany } from './selection';

type ListProps = { letters: DeadLetter[]; actions: DeadLetterActions; partial: boolean };

/** Which groups are open stands in the address. */
export function DeadLetterGroups({ letters, actions, partial }: ListProps) {
  const [query, change] = useQueryString();
  const groups = useMemo(() => groupsOf(letters), [letters]);
  const opened = query.getAll('group');
  const ids = openIds(letters);
  const toggle = (name: string) => {
    const group = opened.includes(name) ? opened.filter((each) => each !== name) : [...opened, name];
    change({ group }, { replace: true });
  };
  return (
    <>
      <div className="letters-summary">
        {actions.mayOperate && ids.length > 0 && (
          <TriStateCheckbox
            state={howMany(actions.chosen, ids)}
            label="Select all that are shown"
            onChange={(on) => actions.onChoose(ids, on)}
          />
        )}
        <span className="faint" role="status">
          {`${counted(letters.length, 'letter')}${partial ? ' so far' : ''}, ${counted(groups.length, 'different error')}`}
        </span>
      </div>
      <ul className="letters-groups">
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
