import { BaseEdge, EdgeLabelRenderer, type EdgeProps, getBezierPath } from '@xyflow/react';
import type { EdgeCondition } from './conditions';
import { type Point, pathThrough } from './layout';

export function RoutedEdge(props: EdgeProps) {
  const points = props.data?.points as Point[] | undefined;
  const condition = props.data?.condition as EdgeCondition | undefined;
  const [bezier, x, y] = getBezierPath(props);
  const place = (props.data?.place as Point | undefined) ?? { x, y };
  return (
    <>
      <BaseEdge id={props.id} path={points ? pathThrough(points) : bezier} />
      {condition && (
        <EdgeLabelRenderer>
          <div
            className="edge-condition"
            style={{ transform: `translate(${place.x}px, ${place.y}px)` }}
            title={`Runs only if ${condition.whole}`}
          >
            {condition.short}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
}
