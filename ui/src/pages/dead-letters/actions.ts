import type { DeadLetter } from '../../api/calls';
import type { Chosen } from './selection';

export type DeadLetterActions = {
  mayOperate: boolean;
  chosen: Chosen;
  onChoose: (ids: number[], on: boolean) => void;
  onRetry: (letters: DeadLetter[]) => void;
  onDrop: (letters: DeadLetter[]) => void;
  onInspect: (letter: DeadLetter) => void;
};
