import { ChevronLeft, ChevronRight, FileOutput, X } from 'lucide-react';
import { Button } from '../../../components/Button';
import type { Run } from '../useRun';
import { type Step, stepsTo } from './addresses';

type TrailProps = {
  run: Run;
  /** The item whose graph is shown. */
  address: string;
  /** Shows a node, and the graph that it is in: of an item, or with null of the execution. */
  onShow: (nodeId: string | null, under: string | null) => void;
};

/** The way to an item: the maps that it is inside of, and the items beside it. */
export function ItemTrail({ run, address, onShow }: TrailProps) {
  const steps = stepsTo(address, (id) => run.store.get(id) !== undefined);
  const last = steps.at(-1);
  const around = steps.at(-2)?.item ?? null;
  if (!last) return null;
  const [first, end] = boundsOf(run, last);
  const step = (by: number) => onShow(null, `${last.nodeId}[${last.index + by}]`);
  return (
    <nav className="item-trail" aria-label="Way to the item">
      <ol>
        <li>
          <button type="button" className="as-link" onClick={() => onShow(null, null)}>
            All nodes
          </button>
        </li>
        {steps.map(({ nodeId, item }, position) => (
          <li key={item}>
            <button
              type="button"
              className="as-link"
              onClick={() => onShow(nodeId, steps[position - 1]?.item ?? null)}
            >
              {nameOf(nodeId, steps[position - 1])}
            </button>
            {item === last.item ? (
              <strong aria-current="location">[{last.index}]</strong>
            ) : (
              <button type="button" className="as-link" onClick={() => onShow(null, item)}>
                {item.slice(nodeId.length)}
              </button>
            )}
          </li>
        ))}
      </ol>
      <span className="actions">
        <Button
          kind="quiet"
          icon={ChevronLeft}
          aria-label="The item before"
          title="The item before"
          disabled={last.index <= first}
          onClick={() => step(-1)}
        />
        <Button
          kind="quiet"
          icon={ChevronRight}
          aria-label="The next item"
          title="The next item"
          disabled={end !== null && last.index >= end}
          onClick={() => step(1)}
        />
        <Button kind="quiet" icon={FileOutput} onClick={() => onShow(address, address)}>
          Details
        </Button>
        <Button
          kind="quiet"
          icon={X}
          aria-label="Close the item"
          title="Close the item"
          onClick={() => onShow(last.nodeId, around)}
        />
      </span>
    </nav>
  );
}

function nameOf(nodeId: string, before: Step | undefined): string {
  return before ? nodeId.slice(before.item.length + 1) : nodeId;
}

/** The first and the last index; the last of a map inside of an item isn't known here. */
function boundsOf(run: Run, { nodeId }: Step): [number, number | null] {
  const node = run.store.get(nodeId);
  const first = node?.handler === 'repeat' ? 1 : 0;
  if (!node?.items) return [0, null];
  const { open, completed, failed, skipped, cancelled } = node.items;
  return [first, first + open + completed + failed + skipped + cancelled - 1];
}
