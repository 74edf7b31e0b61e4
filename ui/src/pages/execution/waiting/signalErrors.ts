// Which field of the form each of the server's problems with a signal belongs to.
import type { Problem } from '../../../api/problem';

const FIELDS = ['name', 'payload', 'correlation'] as const;
export type SignalErrors = Partial<Record<(typeof FIELDS)[number], string>>;

/** `isAllPlaced` is false if something is about no field. */
export function signalErrors(refusal: Pick<Problem, 'problems'>): {
  errors: SignalErrors;
  isAllPlaced: boolean;
} {
  const errors: SignalErrors = {};
  let isAllPlaced = refusal.problems.length > 0;
  for (const { path, message } of refusal.problems) {
    const field = FIELDS.find((name) => path === name || path.startsWith(`${name}.`));
    if (!field) {
      isAllPlaced = false;
      continue;
    }
    const inside = path.slice(field.length + 1);
    const text = inside ? `${inside}: ${message}` : message;
    errors[field] = errors[field] ? `${errors[field]}; ${text}` : text;
  }
  return { errors, isAllPlaced };
}
