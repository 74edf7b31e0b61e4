import {
  Ban,
  Check,
  CircleDashed,
  CirclePause,
  CircleSlash,
  Hourglass,
  Inbox,
  LoaderCircle,
  type LucideIcon,
  RotateCw,
  X,
} from 'lucide-react';
import type { ExecutionState } from './api/calls';

export const EXECUTION_STATES = [
  'PENDING',
  'RUNNING',
  'PAUSED',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
] as const satisfies readonly ExecutionState[];

export function isExecutionState(text: string): text is ExecutionState {
  return (EXECUTION_STATES as readonly string[]).includes(text);
}

/** States that deserve attention come first. */
export const NODE_ORDER: readonly string[] = [
  'FAILED',
  'RETRYING',
  'RUNNING',
  'WAITING',
  'QUEUED',
  'PENDING',
  'COMPLETED',
  'SKIPPED',
  'CANCELLED',
];

const ICONS: Record<string, LucideIcon> = {
  PENDING: CircleDashed,
  QUEUED: Inbox,
  RUNNING: LoaderCircle,
  COMPLETED: Check,
  FAILED: X,
  SKIPPED: CircleSlash,
  CANCELLED: Ban,
  RETRYING: RotateCw,
  WAITING: Hourglass,
  PAUSED: CirclePause,
};

export function iconOf(state: string): LucideIcon {
  return ICONS[state] ?? CircleDashed;
}

export function hasEnded(state: string): boolean {
  return state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELLED';
}

export function nodeHasEnded(state: string): boolean {
  return hasEnded(state) || state === 'SKIPPED';
}

export function isAtWork(state: string): boolean {
  return state === 'RUNNING' || state === 'QUEUED' || state === 'RETRYING' || state === 'WAITING';
}

/** The class that gives an element its state's colour as `--state`. */
export function stateClass(state: string): string {
  return `state-${state.toLowerCase()}`;
}

/** The class of an optional node that failed: nothing came of it, so it is dim. */
export function harmlessClass(node: { state: string; optional: boolean }): string {
  return node.optional && node.state === 'FAILED' ? 'harmless' : '';
}
