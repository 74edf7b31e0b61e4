import { BaseEdge, type EdgeProps, getBezierPath } from '@xyflow/react';
import { type Point, pathThrough } from './layout';

export function RoutedEdge(props: EdgeProps) {
  const points = props.data?.points as Point[] | undefined;
  const path = points ? pathThrough(points) : getBezierPath(props)[0];
  return <BaseEdge id={props.id} path={path} />;
}
