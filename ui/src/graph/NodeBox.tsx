import type { Node, NodeProps } from '@xyflow/react';
import { RotateCcw } from 'lucide-react';
import { memo, useSyncExternalStore } from 'react';
import type { GraphNode } from '../api/calls';
import { StateIcon } from '../components/StateIcon';
import { TimeLeft } from '../components/TimeLeft';
import { reasonText } from '../reasonText';
import { harmlessClass, isAtWork, stateClass } from '../states';
import { localText } from '../time';
import { BoxHandles } from './BoxHandles';
import { ItemsBar } from './ItemsBar';
import { itemsText } from './itemsText';
import type { NodeStore } from './nodeStore';
import { useMarks } from './useMarks';

export type NodeBoxData = Node<{ store: NodeStore; id: string }, 'box'>;

export const NodeBox = memo(function NodeBox({ data }: NodeProps<NodeBoxData>) {
  const node = useSyncExternalStore(data.store.subscribe, () => data.store.get(data.id));
  const { selected, critical, retry } = useMarks();
  if (!node) return null;
  const runReason = retry?.get(node.id);
  const classes = ['node-box', stateClass(node.state || 'plain')];
  classes.push(harmlessClass(node));
  if (selected === node.id) classes.push('selected');
  if (critical.has(node.id)) classes.push('critical');
  if (retry) classes.push(runReason === null || runReason === undefined ? 'reused' : 'again');
  const isTimed = node.until && isAtWork(node.state);
  return (
    <div className={classes.join(' ')} title={tooltipOf(node, runReason)}>
      <BoxHandles />
      {node.state && (
        <span className="node-icon">
          <StateIcon state={node.state} size={16} />
        </span>
      )}
      <span className="node-words">
        <span className="node-name">{data.store.nameOf(node.id)}</span>
        <span className="node-handler">
          {isTimed && <TimeLeft until={node.until} />}
          {!isTimed && !node.items && node.handler}
          {!isTimed && node.attempt > 1 && ` · attempt ${node.attempt}`}
          {node.optional && ' · optional'}
          {node.items && `${isTimed ? ' · ' : ''}${itemsText(node.items, node.handler)}`}
        </span>
        {node.items && node.handler !== 'repeat' && (
          <ItemsBar items={node.items} text={itemsText(node.items, node.handler)} />
        )}
      </span>
      {retry && runReason !== null && runReason !== undefined && (
        <RotateCcw size={14} aria-hidden="true" className="node-again" />
      )}
    </div>
  );
});

function tooltipOf(node: GraphNode, runReason: string | null | undefined): string {
  const lines = [node.id, `${node.handler}${node.state ? ` · ${node.state}` : ''}`];
  if (node.until && isAtWork(node.state)) lines.push(`goes on ${localText(node.until)}`);
  if (node.reason) lines.push(reasonText(node.reason));
  if (node.error) lines.push(node.error);
  if (runReason) lines.push(`Would run again: ${runReason}`);
  if (runReason === null) lines.push('Its output would be reused');
  return lines.join('\n');
}
