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

export type NodeState =
  | 'PENDING'
  | 'QUEUED'
  | 'RUNNING'
  | 'COMPLETED'
  | 'FAILED'
  | 'SKIPPED'
  | 'CANCELLED'
  | 'RETRYING'
  | 'WAITING';
export const EXECUTION_STATES = ['PENDING', 'RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED'] as const;
export type ExecutionState = (typeof EXECUTION_STATES)[number];

/** What deserves attention first stands first. */
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
