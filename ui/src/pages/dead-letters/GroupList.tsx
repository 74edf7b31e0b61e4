import { useMemo } from 'react';
import type { DeadLetter } from '../../api/calls';
import { useQueryString } from '../../routing';
import { GroupRow, type LetterActions } from './GroupRow';
import { groupsOf, openIds, shortKey } from './groups';
import { counted, howMany } from './selection';
import { Tick } from './Tick';

type ListProps = { letters: DeadLetter[]; actions: LetterActions; partial: boolean };

/** Which groups are open stands in the address. */
export function GroupList({ letters, actions, partial }: ListProps) {
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
          <Tick
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
            <GroupRow
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
