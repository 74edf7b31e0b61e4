import { Handle, type Node, type NodeProps, Position } from '@xyflow/react';
import { ChevronsUpDown, RotateCcw } from 'lucide-react';
import { memo, useCallback, useSyncExternalStore } from 'react';
import { StateIcon } from '../components/basics';
import { StateShares } from '../components/charts';
import { reasonText } from '../reasons';
import { stateClass } from '../states';
import { type Group, groupName } from './groups';
import { useMarks } from './marks';
import { countStates, type NodeNow, type NodeStore } from './model';

export type NodeBoxData = Node<{ store: NodeStore; id: string }, 'box'>;
export type GroupBoxData = Node<{ store: NodeStore; group: Group; members: string[] }, 'group-box'>;

export const NodeBox = memo(function NodeBox({ data }: NodeProps<NodeBoxData>) {
  const node = useSyncExternalStore(data.store.subscribe, () => data.store.get(data.id));
  const { selected, critical, retry } = useMarks();
  if (!node) return null;
  const again = retry?.get(node.id);
  const classes = ['node-box', stateClass(node.state || 'plain')];
  if (selected === node.id) classes.push('selected');
  if (critical.has(node.id)) classes.push('critical');
  if (retry) classes.push(again === null || again === undefined ? 'kept' : 'again');
  return (
    <div className={classes.join(' ')} title={saying(node, again)}>
      <Handles />
      {node.state && (
        <span className="node-icon">
          <StateIcon state={node.state} size={16} />
        </span>
      )}
      <span className="node-words">
        <span className="node-name">{node.id}</span>
        <span className="node-handler">
          {node.handler}
          {node.attempt > 1 && ` · attempt ${node.attempt}`}
          {node.optional && ' · optional'}
        </span>
      </span>
      {retry && again !== null && again !== undefined && (
        <RotateCcw size={14} aria-hidden="true" className="node-again" />
      )}
    </div>
  );
});

function saying(node: NodeNow, again: string | null | undefined): string {
  const lines = [node.id, `${node.handler}${node.state ? ` · ${node.state}` : ''}`];
  if (node.reason) lines.push(reasonText(node.reason));
  if (node.error) lines.push(node.error);
  if (again) lines.push(`Would run again: ${again}`);
  if (again === null) lines.push('Its output would be kept');
  return lines.join('\n');
}

export const GroupBox = memo(function GroupBox({ data }: NodeProps<GroupBoxData>) {
  const { store, group, members } = data;
  const { selected, critical, retry } = useMarks();
  const read = useCallback(() => store.version, [store]);
  useSyncExternalStore(store.subscribe, read);
  const counts = countStates(members.map((id) => store.get(id)));
  const isPlain = '' in counts;
  const runs = retry ? members.filter((id) => typeof retry.get(id) === 'string').length : 0;
  const classes = ['group-box'];
  if (selected !== null && members.includes(selected)) classes.push('selected');
  if (members.some((id) => critical.has(id))) classes.push('critical');
  if (retry) classes.push(runs ? 'again' : 'kept');
  return (
    <div className={classes.join(' ')}>
      <Handles />
      <span className="group-name">
        {groupName(group)}
        <ChevronsUpDown size={14} aria-hidden="true" />
      </span>
      <span className="node-handler">
        {members.length} nodes
        {retry && runs > 0 && ` · ${runs} run again`}
        {!retry && worst(counts)}
      </span>
      {!isPlain && <StateShares counts={counts} />}
    </div>
  );
});

function worst(counts: Record<string, number>): string {
  for (const state of ['FAILED', 'RETRYING', 'RUNNING', 'QUEUED']) {
    if (counts[state]) return ` · ${counts[state]} ${state.toLowerCase()}`;
  }
  return '';
}

function Handles() {
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  );
}
