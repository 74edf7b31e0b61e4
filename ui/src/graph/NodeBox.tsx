import type { Node, NodeProps } from '@xyflow/react';
import { RotateCcw } from 'lucide-react';
import { memo, useSyncExternalStore } from 'react';
import type { GraphNode } from '../api/calls';
import { StateIcon } from '../components/StateIcon';
import { reasonText } from '../reasonText';
import { harmlessClass, stateClass } from '../states';
import { BoxHandles } from './BoxHandles';
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
  return (
    <div className={classes.join(' ')} title={tooltipOf(node, runReason)}>
      <BoxHandles />
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
          {node.items && ` · ${itemsText(node.items)}`}
        </span>
        {node.items && (
          <progress
            className={node.items.failed ? 'node-items failed' : 'node-items'}
            aria-label={itemsText(node.items)}
            value={endedItems(node.items)}
            max={Math.max(node.items.total, 1)}
          />
        )}
      </span>
      {retry && runReason !== null && runReason !== undefined && (
        <RotateCcw size={14} aria-hidden="true" className="node-again" />
      )}
    </div>
  );
});

type Items = NonNullable<GraphNode['items']>;

function endedItems(items: Items): number {
  return items.completed + items.failed + items.skipped + items.cancelled;
}

/** `9,987 of 10,000, 13 failed` */
function itemsText(items: Items): string {
  const done = `${endedItems(items).toLocaleString('en')} of ${items.total.toLocaleString('en')}`;
  return items.failed ? `${done}, ${items.failed.toLocaleString('en')} failed` : done;
}

function tooltipOf(node: GraphNode, runReason: string | null | undefined): string {
  const lines = [node.id, `${node.handler}${node.state ? ` · ${node.state}` : ''}`];
  if (node.reason) lines.push(reasonText(node.reason));
  if (node.error) lines.push(node.error);
  if (runReason) lines.push(`Would run again: ${runReason}`);
  if (runReason === null) lines.push('Its output would be reused');
  return lines.join('\n');
}
