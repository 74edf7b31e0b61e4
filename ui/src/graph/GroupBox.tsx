import type { Node, NodeProps } from '@xyflow/react';
import { ChevronsUpDown } from 'lucide-react';
import { memo, useCallback, useSyncExternalStore } from 'react';
import { StateShares } from '../components/StateShares';
import { BoxHandles } from './BoxHandles';
import { type Group, groupName } from './groups';
import { countStates, type NodeStore } from './nodeStore';
import { useMarks } from './useMarks';

export type GroupBoxData = Node<{ store: NodeStore; group: Group; members: string[] }, 'group-box'>;

export const GroupBox = memo(function GroupBox({ data }: NodeProps<GroupBoxData>) {
  const { store, group, members } = data;
  const { selected, critical, retry } = useMarks();
  const read = useCallback(() => store.version, [store]);
  useSyncExternalStore(store.subscribe, read);
  const counts = countStates(members.map((nodeId) => store.get(nodeId)));
  const isPlain = '' in counts;
  const runAgainCount = retry
    ? members.filter((nodeId) => typeof retry.get(nodeId) === 'string').length
    : 0;
  const classes = ['group-box'];
  if (selected !== null && members.includes(selected)) classes.push('selected');
  if (members.some((nodeId) => critical.has(nodeId))) classes.push('critical');
  if (retry) classes.push(runAgainCount ? 'again' : 'reused');
  return (
    <div className={classes.join(' ')}>
      <BoxHandles />
      <span className="group-name">
        {groupName(group)}
        <ChevronsUpDown size={14} aria-hidden="true" />
      </span>
      <span className="node-handler">
        {members.length} nodes
        {retry && runAgainCount > 0 && ` · ${runAgainCount} run again`}
        {!retry && mostUrgentState(counts)}
      </span>
      {!isPlain && <StateShares counts={counts} />}
    </div>
  );
});

function mostUrgentState(counts: Record<string, number>): string {
  for (const state of ['FAILED', 'RETRYING', 'RUNNING', 'QUEUED']) {
    if (counts[state]) return ` · ${counts[state]} ${state.toLowerCase()}`;
  }
  return '';
}
