import type { GraphNode, ItemCounts } from '../../../api/calls';
import { TimeLeft } from '../../../components/TimeLeft';
import { ItemsBar } from '../../../graph/ItemsBar';
import { endedItems, itemsText } from '../../../graph/itemsText';
import { leftText } from '../../../time';
import { rateText } from './rate';
import { useRate } from './useRate';

/** How far a map or a loop is: a bar, counts, and of a map that runs its rate and the time left. */
export function ItemProgress({ node, items }: { node: GraphNode; items: ItemCounts }) {
  const isLoop = node.handler === 'repeat';
  const isRunning = node.state === 'WAITING';
  const ended = endedItems(items);
  const rate = useRate(ended, isRunning && !isLoop);
  const text = itemsText(items, node.handler);
  return (
    <div className="item-progress">
      <p>
        <strong>{text}</strong>
        {isRunning && !isLoop && (
          <span className="faint"> · {items.open.toLocaleString('en')} open</span>
        )}
      </p>
      {isRunning && !isLoop && (
        <p className="faint">
          {rate
            ? `${rateText(rate)}, about ${leftText((items.total - ended) / rate)} left`
            : 'No item has ended since this was opened'}
        </p>
      )}
      {!isLoop && <ItemsBar items={items} text={text} />}
      {isLoop && isRunning && node.until && (
        <p className="node-reason">
          Round {ended + 1} begins in <TimeLeft until={node.until} />
        </p>
      )}
    </div>
  );
}
